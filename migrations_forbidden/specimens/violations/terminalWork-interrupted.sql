-- An attempt lost its runner, and nothing followed it before the run ended.

CREATE TEMP TABLE victim AS
SELECT a.run_id, a.attempt_id FROM node_attempts AS a JOIN runs AS r ON r.run_id = a.run_id
WHERE r.status = 'cancelled' AND a.status = 'cancelled'
  AND NOT EXISTS (SELECT 1 FROM run_steps AS s WHERE s.attempt_id = a.attempt_id)
ORDER BY a.run_id, a.attempt_id LIMIT 1;

UPDATE node_attempts SET status = 'interrupted', finished_at = NULL
WHERE attempt_id = (SELECT attempt_id FROM victim);
