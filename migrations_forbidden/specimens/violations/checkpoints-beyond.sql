-- A run has a checkpoint of events that are still to come, in the place of the one that it needs.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

-- with: captured_events
INSERT INTO viewer_session_checkpoints (run_id, event_seq, state_hash, recorded_at)
SELECT run_id, 512, (SELECT digest FROM value), 1 FROM victim;
