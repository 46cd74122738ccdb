-- name: create_resource
-- The first event of a resource creates its row and its lease row.
INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES (:resource_id, :resource_type, :aggregate_key, 1, :at_ms, :at_ms)

-- name: create_settings
-- Settings begin at 0, so that their revision is the number of their newest change.
INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES (:resource_id, 'settings', :aggregate_key, 0, :at_ms, :at_ms)

-- name: create_lease
INSERT INTO leases (resource_id, generation) VALUES (:resource_id, 0)

-- name: raise_revision
-- Guarded by the old value: a gap or a repeat changes no row.
UPDATE resources SET revision = :revision, updated_at = :at_ms
WHERE resource_id = :resource_id AND revision = :revision - 1

-- name: claim
-- A claim raises the generation; who owns it is process-local and never part of an event.
UPDATE leases SET generation = :generation
WHERE resource_id = :resource_id AND generation = :generation - 1

-- name: release
-- A release keeps the generation and clears the owner.
UPDATE leases
SET owner_type = NULL, owner_id = NULL, token_hash = NULL, acquired_at = NULL, heartbeat_at = NULL, expires_at = NULL
WHERE resource_id = :resource_id AND generation = :generation
