-- name: lease
SELECT owner_type, owner_id, token_hash, generation, expires_at
FROM leases
WHERE resource_id = :resource_id;

-- name: renew
UPDATE leases
SET heartbeat_at = :now_ms, expires_at = :expires_at
WHERE resource_id = :resource_id
    AND owner_type = :owner_type
    AND owner_id = :owner_id
    AND token_hash = :token_hash
    AND generation = :generation
    AND expires_at > :now_ms;

-- name: take
UPDATE leases
SET
    owner_type = :owner_type, owner_id = :owner_id, token_hash = :token_hash,
    acquired_at = :acquired_at, heartbeat_at = :acquired_at, expires_at = :expires_at
WHERE resource_id = :resource_id
    AND generation = :generation
    AND (owner_type IS NULL OR expires_at <= :acquired_at);

-- name: release
UPDATE leases
SET
    owner_type = NULL, owner_id = NULL, token_hash = NULL,
    acquired_at = NULL, heartbeat_at = NULL, expires_at = NULL
WHERE resource_id = :resource_id AND generation = :generation AND owner_type IS NOT NULL;

-- name: owned
SELECT resource_id, owner_type, owner_id, generation, expires_at
FROM leases
WHERE owner_type IS NOT NULL
ORDER BY owner_type, owner_id, resource_id;

-- name: epoch
SELECT epoch FROM workflow_host_state WHERE id = 1;
