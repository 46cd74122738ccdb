-- name: steps
-- A range of a run's steps with the values that they name; small values come along.
SELECT a.attempt_id, a.node_id, a.visit_number, a.attempt_number, a.node_type, a.status,
       a.started_at, a.finished_at, a.settings_scope_id, a.settings_change_number, a.settings_hash,
       a.prompt_hash, p.media_type, p.byte_length,
       CASE WHEN p.byte_length <= :carried_bytes THEN p.content END,
       a.output_hash, o.media_type, o.byte_length,
       CASE WHEN o.byte_length <= :carried_bytes THEN o.content END,
       a.receipt_hash, c.media_type, c.byte_length,
       CASE WHEN c.byte_length <= :carried_bytes THEN c.content END,
       a.error_hash, e.media_type, e.byte_length,
       CASE WHEN e.byte_length <= :carried_bytes THEN e.content END,
       (SELECT entry_id FROM attempt_entries AS l WHERE l.attempt_id = a.attempt_id AND l.role = 'first'),
       (SELECT entry_id FROM attempt_entries AS l WHERE l.attempt_id = a.attempt_id AND l.role = 'last'),
       m.receipt_hash, g.media_type, g.byte_length,
       CASE WHEN g.byte_length <= :carried_bytes THEN g.content END
FROM run_steps AS t
CROSS JOIN node_attempts AS a ON a.attempt_id = t.attempt_id
LEFT JOIN interactive_requests AS q ON q.attempt_id = a.attempt_id AND q.kind = 'assistant'
LEFT JOIN interactive_submissions AS m ON m.submission_id = q.accepted_submission_id
LEFT JOIN blobs AS g ON g.blob_hash = m.receipt_hash
LEFT JOIN blobs AS p ON p.blob_hash = a.prompt_hash
LEFT JOIN blobs AS o ON o.blob_hash = a.output_hash
LEFT JOIN blobs AS c ON c.blob_hash = a.receipt_hash
LEFT JOIN blobs AS e ON e.blob_hash = a.error_hash
WHERE t.run_id = :run_id AND t.step_index >= :start AND t.step_index < :stop
ORDER BY t.step_index

-- name: trace
-- A range of a run's events: a place in the trace is a revision of the run's resource.
SELECT e.resource_revision, e.recorded_at, e.actor_type, e.event_type, b.content
FROM events AS e
CROSS JOIN blobs AS b ON b.blob_hash = e.payload_hash
WHERE e.resource_id = :resource_id
  AND e.resource_revision > :start AND e.resource_revision <= :stop
ORDER BY e.resource_revision

-- name: attempt_node
-- The node of an attempt that an event names without its node.
SELECT node_id FROM node_attempts WHERE attempt_id = :attempt_id

-- name: current_updates
-- The newest update of each type and key. Index workflow_updates_key is skipped through: one lookup for each key,
-- however often it was published.
WITH RECURSIVE current (update_type, update_key, update_id) AS (
    SELECT u.update_type, u.update_key, u.update_id
    FROM workflow_updates AS u
    WHERE u.update_id = (
        SELECT n.update_id FROM workflow_updates AS n WHERE n.run_id = :run_id
        ORDER BY n.update_type, n.update_key, n.run_revision DESC LIMIT 1)
    UNION ALL
    SELECT u.update_type, u.update_key, u.update_id
    FROM current AS c
    CROSS JOIN workflow_updates AS u ON u.update_id = coalesce(
        (SELECT n.update_id FROM workflow_updates AS n
         WHERE n.run_id = :run_id AND n.update_type = c.update_type AND n.update_key > c.update_key
         ORDER BY n.update_key, n.run_revision DESC LIMIT 1),
        (SELECT n.update_id FROM workflow_updates AS n
         WHERE n.run_id = :run_id AND n.update_type > c.update_type
         ORDER BY n.update_type, n.update_key, n.run_revision DESC LIMIT 1))
    LIMIT :updates_max
)
SELECT u.update_id, u.run_revision
FROM current AS c
CROSS JOIN workflow_updates AS u ON u.update_id = c.update_id

-- name: updates
-- Updates with their data.
SELECT u.update_id, u.run_revision, u.recorded_at, a.node_id, u.attempt_id,
       u.update_type, u.update_key, u.data_hash, d.media_type, d.byte_length,
       CASE WHEN d.byte_length <= :carried_bytes THEN d.content END
FROM json_each(:update_ids) AS asked
CROSS JOIN workflow_updates AS u ON u.update_id = asked.value
CROSS JOIN node_attempts AS a ON a.attempt_id = u.attempt_id
CROSS JOIN blobs AS d ON d.blob_hash = u.data_hash
ORDER BY asked.key

-- name: track
-- The newest accounts under one key, from the end: an estimate looks no further back.
SELECT u.recorded_at, d.content
FROM workflow_updates AS u
CROSS JOIN blobs AS d ON d.blob_hash = u.data_hash
WHERE u.run_id = :run_id AND u.update_type = 'progress' AND u.update_key = :update_key
ORDER BY u.run_revision DESC
LIMIT :accounts_max
