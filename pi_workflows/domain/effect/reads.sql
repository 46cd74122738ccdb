-- name: effect_state
-- One effect of a run.
SELECT e.effect_id, e.effect_type, e.status, e.attempt_count, e.payload_hash, e.result_hash, e.error_hash,
       l.generation, l.owner_type, l.owner_id, r.run_id
FROM effects AS e
JOIN leases AS l ON l.resource_id = e.resource_id
JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.effect_id = :effect_id

-- name: unsettled_effects
-- Effects of a run that are promised or under way. All runs together have few of those, while one run may have applied
-- thousands: so the index of states is the way to them, not the run's own.
SELECT e.effect_id, e.effect_type, e.status, e.attempt_count, e.payload_hash, e.result_hash, e.error_hash,
       l.generation, l.owner_type, l.owner_id, r.run_id
FROM effects AS e INDEXED BY effects_status
CROSS JOIN leases AS l ON l.resource_id = e.resource_id
CROSS JOIN runs AS r ON r.resource_id = e.source_resource_id
WHERE e.source_resource_id = :resource_id AND e.status IN ('pending', 'applying')
ORDER BY e.effect_id

-- name: blocking_effect
-- An effect that forbids a restart.
SELECT effect_id FROM effects INDEXED BY effects_status
WHERE source_resource_id = :resource_id AND status IN ('pending', 'applying', 'ambiguous')
ORDER BY effect_id LIMIT 1

-- name: ambiguous_effect
-- An effect of the run that waits for a person.
SELECT effect_id FROM effects INDEXED BY effects_status
WHERE source_resource_id = :resource_id AND status = 'ambiguous'
ORDER BY effect_id LIMIT 1
