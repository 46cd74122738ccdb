-- name: insert_blob
INSERT INTO blobs (blob_hash, media_type, byte_length, content, created_at)
VALUES (:blob_hash, :media_type, :byte_length, :content, :created_at)
ON CONFLICT (blob_hash) DO NOTHING;

-- name: existing_blob
SELECT media_type, byte_length = length(:content) AND content = :content
FROM blobs
WHERE blob_hash = :blob_hash;

-- name: raise_media_type
-- Text that turns out to be JSON may be read as either; bytes, digest and length stay.
UPDATE blobs SET media_type = 'application/json' WHERE blob_hash = :blob_hash;

-- name: blob_content
SELECT content FROM blobs WHERE blob_hash = :blob_hash;
