-- name: newest_event_at
SELECT recorded_at FROM events ORDER BY event_seq DESC LIMIT 1;
