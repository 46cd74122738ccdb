-- name: blobs
-- Every stored value, small memory: one row at a time.
SELECT blob_hash, media_type, content, created_at FROM blobs
