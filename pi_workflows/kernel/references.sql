-- What a dangling name is the name of: SQLite's own check knows a row by its number, and not at all where it has none.

-- name: dangling
-- Each name that names nothing: its table and its row.
SELECT "table", rowid FROM pragma_foreign_key_check

-- name: dangling_links
-- The links of events have no number: each end that does not exist.
SELECT l.event_seq, l.blob_hash
FROM event_blobs AS l
WHERE NOT EXISTS (SELECT 1 FROM events AS e WHERE e.event_seq = l.event_seq)
UNION ALL
SELECT l.event_seq, l.blob_hash
FROM event_blobs AS l
WHERE NOT EXISTS (SELECT 1 FROM blobs AS b WHERE b.blob_hash = l.blob_hash)
