-- Documents that were generated for viewers: no event tells them, no rebuild compares them.

-- name: keep
-- The same document again is the row that is there.
INSERT INTO run_view_content (run_id, content_hash, media_type, byte_length, content, created_at)
SELECT run_id, :content_hash, :media_type, :byte_length, :content, :now_ms
FROM runs
WHERE run_id = :run_id
ON CONFLICT DO NOTHING

-- name: drop_older
DELETE FROM run_view_content
WHERE run_id = :run_id AND rowid NOT IN (
    SELECT rowid FROM run_view_content WHERE run_id = :run_id
    ORDER BY created_at DESC, rowid DESC LIMIT :kept)
