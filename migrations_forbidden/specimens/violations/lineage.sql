-- A run is made the restart of its own last restart.

CREATE TEMP TABLE victim AS
SELECT root_run_id AS run_id FROM runs ORDER BY restart_number DESC, run_id LIMIT 1;

UPDATE runs
SET lineage_kind = 'restart', parent_run_revision = 1,
    parent_run_id = (SELECT run_id FROM runs WHERE root_run_id = (SELECT run_id FROM victim)
                     ORDER BY restart_number DESC LIMIT 1)
WHERE run_id = (SELECT run_id FROM victim);
