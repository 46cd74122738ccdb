-- A restart was asked for at a revision that its parent never had.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE parent_run_id IS NOT NULL ORDER BY run_id LIMIT 1;

UPDATE runs SET parent_run_revision = 100000 WHERE run_id = (SELECT run_id FROM victim);
