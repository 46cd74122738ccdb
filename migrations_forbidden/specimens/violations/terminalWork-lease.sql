-- A run that has ended has an owner, whose claim goes on.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE leases
SET owner_type = 'host', owner_id = 'forged', token_hash = zeroblob(32), acquired_at = 1, heartbeat_at = 1,
    expires_at = 9000000000000000000
WHERE resource_id = (SELECT resource_id FROM runs WHERE run_id = (SELECT run_id FROM victim));
