-- A runner that has ended is said to run.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE run_workers SET status = 'running'
WHERE worker_epoch = (SELECT worker_epoch FROM run_workers
                      WHERE run_id = (SELECT run_id FROM victim) ORDER BY worker_epoch LIMIT 1);
