-- A run was restarted that goes on.
-- also: queueState

CREATE TEMP TABLE victim AS
SELECT run_id, parent_run_id FROM runs WHERE parent_run_id IS NOT NULL ORDER BY restart_number, run_id LIMIT 1;

UPDATE runs SET status = 'running', finished_at = NULL WHERE run_id = (SELECT parent_run_id FROM victim);
