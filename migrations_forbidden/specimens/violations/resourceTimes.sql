-- A resource is said to have changed later than its last event.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE resources SET updated_at = updated_at + 1
WHERE resource_id = (SELECT resource_id FROM runs WHERE run_id = (SELECT run_id FROM victim));
