-- name: newest_runs
-- The newest runs of all. No index orders all runs, but one orders each project's: the newest of a
-- project that can be in the page are found by its place there, and only they are sorted.
SELECT r.run_id
FROM (SELECT project_id FROM projects UNION ALL SELECT NULL) AS p
CROSS JOIN runs AS r ON r.project_id IS p.project_id
WHERE r.created_at >= coalesce(
    (SELECT n.created_at FROM runs AS n
     WHERE n.project_id IS p.project_id
     ORDER BY n.created_at DESC LIMIT 1 OFFSET :start + :items_max - 1), 0)
ORDER BY r.created_at DESC, r.run_id DESC
LIMIT :items_max OFFSET :start

-- name: count_runs
-- How many runs there are.
SELECT count(*) FROM runs

-- name: newest_of_project
-- The newest runs of one project.
SELECT r.run_id
FROM runs AS r INDEXED BY runs_project_id
WHERE r.project_id = :project_id
ORDER BY r.created_at DESC, r.run_id DESC
LIMIT :items_max OFFSET :start

-- name: count_of_project
-- How many runs a project has.
SELECT count(*) FROM runs INDEXED BY runs_project_id WHERE project_id = :project_id

-- name: newest_of_prefix
-- The newest runs whose ID begins so; the range stands in the primary key.
SELECT r.run_id
FROM runs AS r
WHERE r.run_id >= :prefix AND r.run_id < :prefix_end
  AND (:project_id IS NULL OR r.project_id = :project_id)
  AND (:status IS NULL OR r.status = :status)
ORDER BY r.created_at DESC, r.run_id DESC
LIMIT :items_max OFFSET :start

-- name: count_of_prefix
-- How many runs that is.
SELECT count(*)
FROM runs AS r
WHERE r.run_id >= :prefix AND r.run_id < :prefix_end
  AND (:project_id IS NULL OR r.project_id = :project_id)
  AND (:status IS NULL OR r.status = :status)

-- name: newest_ended
-- The newest runs that ended so.
SELECT r.run_id
FROM runs AS r INDEXED BY runs_status
WHERE r.status = :status AND (:project_id IS NULL OR r.project_id = :project_id)
ORDER BY r.created_at DESC, r.run_id DESC
LIMIT :items_max OFFSET :start

-- name: count_ended
-- How many runs that is.
SELECT count(*)
FROM runs AS r INDEXED BY runs_status
WHERE r.status = :status AND (:project_id IS NULL OR r.project_id = :project_id)

-- name: unended_runs
-- Every run that has not ended, newest first: what people are told about it decides the rest.
SELECT r.run_id
FROM runs AS r INDEXED BY runs_status
WHERE r.status IN ('queued', 'running', 'waiting')
  AND (:project_id IS NULL OR r.project_id = :project_id)
  AND (:prefix IS NULL OR (r.run_id >= :prefix AND r.run_id < :prefix_end))
ORDER BY r.created_at DESC, r.run_id DESC

-- name: last_event
-- The newest event of all.
SELECT event_seq FROM events ORDER BY event_seq DESC LIMIT 1
