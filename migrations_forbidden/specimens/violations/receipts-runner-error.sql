-- A runner's message was accepted, and has an error.

CREATE TEMP TABLE victim AS
SELECT w.run_id, m.worker_epoch, m.message_id
FROM worker_messages AS m JOIN run_workers AS w ON w.worker_epoch = m.worker_epoch
WHERE m.outcome = 'accepted' ORDER BY w.run_id, m.message_id LIMIT 1;

UPDATE worker_messages SET error_hash = (SELECT digest FROM value)
WHERE (worker_epoch, message_id) = (SELECT worker_epoch, message_id FROM victim);
