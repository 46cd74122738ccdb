-- A report of progress is skipped.

CREATE TEMP TABLE victim AS
SELECT a.run_id, u.update_id FROM workflow_updates AS u JOIN node_attempts AS a ON a.attempt_id = u.attempt_id
ORDER BY a.run_id, u.update_seq DESC LIMIT 1;

UPDATE workflow_updates SET update_seq = update_seq + 1 WHERE update_id = (SELECT update_id FROM victim);
