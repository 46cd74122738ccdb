-- A run's checkpoint is not what its captured events lead to.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

-- with: captured_events
INSERT INTO viewer_session_checkpoints (run_id, event_seq, state_hash, recorded_at)
VALUES ((SELECT run_id FROM victim), 256, (SELECT digest FROM value), 1);
