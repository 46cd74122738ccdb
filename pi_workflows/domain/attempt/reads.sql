-- name: update_known
-- Whether the run already has an account of this type and key.
SELECT run_revision FROM workflow_updates
WHERE run_id = :run_id AND update_type = :update_type AND update_key = :update_key
ORDER BY run_revision DESC LIMIT 1

-- name: last_update
-- The number of the attempt's newest update, 0 before the first.
SELECT coalesce(max(update_seq), 0) FROM workflow_updates WHERE attempt_id = :attempt_id

-- name: update_keys
-- How many accounts the run has, as far as it may. Index workflow_updates_key is skipped through: one lookup for each,
-- however often it was published.
WITH RECURSIVE account (update_type, update_key) AS (
    SELECT u.update_type, u.update_key
    FROM workflow_updates AS u
    WHERE u.update_id = (
        SELECT n.update_id FROM workflow_updates AS n WHERE n.run_id = :run_id
        ORDER BY n.update_type, n.update_key LIMIT 1)
    UNION ALL
    SELECT u.update_type, u.update_key
    FROM account AS c
    CROSS JOIN workflow_updates AS u ON u.update_id = coalesce(
        (SELECT n.update_id FROM workflow_updates AS n
         WHERE n.run_id = :run_id AND n.update_type = c.update_type AND n.update_key > c.update_key
         ORDER BY n.update_key LIMIT 1),
        (SELECT n.update_id FROM workflow_updates AS n
         WHERE n.run_id = :run_id AND n.update_type > c.update_type
         ORDER BY n.update_type, n.update_key LIMIT 1))
    LIMIT :keys_max)
SELECT count(*) FROM account
