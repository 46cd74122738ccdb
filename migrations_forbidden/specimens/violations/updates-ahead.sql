-- Progress was reported at a revision that the run never had.

CREATE TEMP TABLE victim AS
SELECT a.run_id, u.update_id FROM workflow_updates AS u JOIN node_attempts AS a ON a.attempt_id = u.attempt_id
ORDER BY a.run_id, u.update_seq DESC LIMIT 1;

UPDATE workflow_updates SET run_revision = 100000 WHERE update_id = (SELECT update_id FROM victim);
