-- name: run_stands
-- Whether there is a run of this ID, whatever of its other rows is missing.
SELECT run_id FROM runs WHERE run_id = :run_id
