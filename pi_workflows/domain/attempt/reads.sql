-- name: update_known
-- Whether the attempt already has an account of this type and key.
SELECT update_seq FROM workflow_updates
WHERE attempt_id = :attempt_id AND update_type = :update_type AND update_key = :update_key
ORDER BY update_seq DESC LIMIT 1

-- name: last_update
-- The number of the attempt's newest update, 0 before the first.
SELECT coalesce(max(update_seq), 0) FROM workflow_updates WHERE attempt_id = :attempt_id

-- name: update_keys
-- How many accounts the attempt has.
SELECT count(*) FROM (
    SELECT DISTINCT update_type, update_key FROM workflow_updates WHERE attempt_id = :attempt_id)
