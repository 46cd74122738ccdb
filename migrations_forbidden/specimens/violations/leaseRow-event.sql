-- An event was written under a claim that is still to come.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE events SET lease_generation = 100000
WHERE resource_revision = 1
  AND resource_id = (SELECT resource_id FROM runs WHERE run_id = (SELECT run_id FROM victim));
