-- The second captured event of a run is there, and not the first.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

-- with: capture_events
INSERT INTO session_events (
    segment_id, run_id, event_seq, run_seq, event_type, attempt_id, payload_hash, presentation_revision, recorded_at)
VALUES (
    'x', (SELECT run_id FROM victim), 1, 2, 'turn',
    NULL,
    (SELECT digest FROM value), 1, 1);
