-- A resource is set ahead of its events.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE resources SET revision = revision + 1
WHERE resource_id = (SELECT resource_id FROM runs WHERE run_id = (SELECT run_id FROM victim));
