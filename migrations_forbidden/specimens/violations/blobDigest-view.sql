-- A document that was made for a view is another one than its digest names.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO run_view_content (run_id, content_hash, media_type, byte_length, content, created_at)
SELECT run_id, zeroblob(32), 'text/plain', 6, CAST('forged' AS BLOB), 1 FROM victim;
