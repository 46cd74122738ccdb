-- A receipt promises a revision that its run never had.

CREATE TEMP TABLE victim AS
SELECT run_id FROM host_commands WHERE operation = 'run.cancel' AND outcome = 'accepted' ORDER BY run_id LIMIT 1;

UPDATE host_commands SET accepted_revision = 100000
WHERE operation = 'run.cancel' AND run_id = (SELECT run_id FROM victim);
