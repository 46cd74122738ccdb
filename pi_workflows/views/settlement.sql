-- name: told_up_to
-- The newest event up to a place in a run's trace that settles an attempt, or that tells of one: all
-- others together are few beside them.
SELECT e.event_type, b.content
FROM events AS e
CROSS JOIN blobs AS b ON b.blob_hash = e.payload_hash
WHERE e.resource_id = :resource_id AND e.resource_revision <= :seq
  AND e.event_type IN ('attempt.settled', 'update.recorded')
ORDER BY e.resource_revision DESC
LIMIT 1

-- name: first_update
-- Where in the trace an attempt published first.
SELECT run_revision FROM workflow_updates WHERE attempt_id = :attempt_id ORDER BY update_seq LIMIT 1
