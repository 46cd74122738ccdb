-- A run has a checkpoint of events that were never captured.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO viewer_session_checkpoints (run_id, event_seq, state_hash, recorded_at)
SELECT run_id, 256, (SELECT digest FROM value), 1 FROM victim;
