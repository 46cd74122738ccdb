-- name: newest_event_at
SELECT recorded_at FROM events ORDER BY event_seq DESC LIMIT 1;

-- name: runs_of_prefix
-- The runs whose ID begins so, from the table of runs alone; the one that is called exactly so comes first, then the
-- newest.
SELECT run_id FROM runs WHERE run_id >= :prefix AND run_id < :prefix_end
ORDER BY run_id = :prefix DESC, created_at DESC, run_id DESC LIMIT :runs_max;

-- name: count_of_prefix
-- How many runs that is.
SELECT count(*) FROM runs WHERE run_id >= :prefix AND run_id < :prefix_end;
