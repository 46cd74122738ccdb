-- A captured entry is put into a session after the session was digested.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

-- with: capture_entries
INSERT INTO session_entries (
    segment_id, run_id, entry_seq, run_seq, entry_id, entry_hash, presentation_revision, recorded_at)
VALUES (
    'x', (SELECT run_id FROM victim),
    1, 1, 'entry-1',
    (SELECT digest FROM value), 1, 1);
