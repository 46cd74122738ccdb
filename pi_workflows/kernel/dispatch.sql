-- name: revision
-- The revision that a resource has now.
SELECT revision FROM resources WHERE resource_id = :resource_id

-- name: presentation_revision
-- Where the viewers of a run stand.
SELECT presentation_revision FROM viewer_runs WHERE run_id = :run_id

-- name: run_exists
-- A receipt names a run only when there is one.
SELECT 1 FROM runs WHERE run_id = :run_id
