-- name: counts
-- How much a capsule holds.
SELECT (SELECT count(*) FROM events), (SELECT count(*) FROM blobs)
