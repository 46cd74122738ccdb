-- Time runs in a pause.
-- also: effectState

CREATE TEMP TABLE victim AS
SELECT a.run_id, a.attempt_id FROM attempt_active_intervals AS i JOIN node_attempts AS a ON a.attempt_id = i.attempt_id
WHERE i.ended_at IS NULL ORDER BY a.run_id LIMIT 1;

UPDATE runs SET paused = 1 WHERE run_id = (SELECT run_id FROM victim);
UPDATE effects SET status = 'pending'
WHERE status = 'applying'
  AND source_resource_id = (SELECT resource_id FROM runs WHERE run_id = (SELECT run_id FROM victim));
