-- A claim ends before it was renewed.

CREATE TEMP TABLE victim AS
SELECT r.run_id FROM leases AS l JOIN runs AS r ON r.resource_id = l.resource_id
WHERE l.owner_type IS NOT NULL ORDER BY r.run_id LIMIT 1;

UPDATE leases SET expires_at = heartbeat_at
WHERE resource_id = (SELECT resource_id FROM runs WHERE run_id = (SELECT run_id FROM victim));
