-- name: blob
-- One stored value.
SELECT media_type, content, created_at FROM blobs WHERE blob_hash = :digest
