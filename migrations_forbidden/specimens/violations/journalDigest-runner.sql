-- A runner is said to have been answered otherwise.

CREATE TEMP TABLE victim AS
SELECT w.run_id FROM worker_messages AS m JOIN run_workers AS w ON w.worker_epoch = m.worker_epoch
WHERE m.outcome = 'accepted' ORDER BY w.run_id LIMIT 1;

UPDATE worker_messages SET outcome = 'adopted'
WHERE outcome = 'accepted'
  AND worker_epoch IN (SELECT worker_epoch FROM run_workers WHERE run_id = (SELECT run_id FROM victim));
