-- name: is_stored
-- Whether a value was copied already.
SELECT 1 FROM blobs WHERE blob_hash = :digest

-- name: blob
-- One stored value.
SELECT media_type, content, created_at FROM blobs WHERE blob_hash = :digest
