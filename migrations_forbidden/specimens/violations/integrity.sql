-- An index is taken away while a row changes, and put back: it leads to rows that are others.

PRAGMA writable_schema = ON;
CREATE TEMP TABLE kept AS SELECT * FROM sqlite_schema WHERE name = 'run_workers_run_id';
DELETE FROM sqlite_schema WHERE name = 'run_workers_run_id';
PRAGMA writable_schema = RESET;
UPDATE run_workers SET started_at = started_at + 1;
PRAGMA writable_schema = ON;
INSERT INTO sqlite_schema SELECT * FROM kept;
PRAGMA writable_schema = RESET;
