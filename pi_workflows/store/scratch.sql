-- name: delete_mark
DELETE FROM sqlite_sequence WHERE name = 'events';

-- name: insert_mark
INSERT INTO sqlite_sequence (name, seq) VALUES ('events', :event_seq);
