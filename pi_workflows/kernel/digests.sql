-- What is read to recompute digests and to parse content: each table once and row by row, so that memory holds one row.

-- name: client_receipts
-- Every receipt of a client's command, whose run is no part of its digest.
SELECT request_id, client_id, operation, idempotency_key, request_fingerprint, accepted_revision, outcome,
       receipt_hash, error_hash, host_epoch, created_at, completed_at, row_digest, run_id
FROM host_commands

-- name: runner_receipts
-- Every receipt of a runner's message.
SELECT m.worker_epoch, m.message_id, m.request_fingerprint, m.outcome, m.accepted_revision, m.result_hash,
       m.error_hash, m.completed_at, m.row_digest, w.run_id
FROM worker_messages AS m LEFT JOIN run_workers AS w ON w.worker_epoch = m.worker_epoch

-- name: captures
-- Every capture with the running digests over what it holds.
SELECT segment_id, run_id, entry_digest, event_digest FROM session_segments

-- name: captured_entries
-- What a capture holds, in the order in which it was appended.
SELECT segment_id, entry_seq, run_seq, entry_id, entry_hash, run_id, presentation_revision, recorded_at
FROM session_entries WHERE segment_id = :segment_id ORDER BY entry_seq

-- name: folded_events
-- What the replay states of sessions are made of, run by run. A missing value is no JSON.
SELECT e.run_id, e.run_seq, e.event_type, e.message_id, e.tool_call_id, coalesce(b.content, X'')
FROM session_events AS e
LEFT JOIN blobs AS b ON b.blob_hash = e.payload_hash
ORDER BY e.run_id, e.run_seq

-- name: checkpoints
-- The replay states of a run.
SELECT event_seq, state_hash FROM viewer_session_checkpoints WHERE run_id = :run_id

-- name: captured_events
-- The same of its timing journal.
SELECT segment_id, event_seq, run_seq, event_type, node_id, attempt_id, turn_id, message_id, tool_call_id,
       payload_hash, run_id, presentation_revision, recorded_at
FROM session_events WHERE segment_id = :segment_id ORDER BY event_seq

-- name: blobs
-- Every stored value.
SELECT blob_hash, media_type, byte_length, content FROM blobs

-- name: view_content
-- Every generated document.
SELECT run_id, content_hash, content FROM run_view_content

-- name: events
-- The digest that each event continues, and the event with its payload.
SELECT p.event_digest, e.event_seq, e.event_id, e.resource_id, e.resource_revision, e.event_type, e.actor_type,
       e.actor_id, e.lease_generation, e.payload_hash, e.event_digest, e.recorded_at, b.content
FROM events AS e
LEFT JOIN events AS p ON p.resource_id = e.resource_id AND p.resource_revision = e.resource_revision - 1
LEFT JOIN blobs AS b ON b.blob_hash = e.payload_hash
ORDER BY e.event_seq

-- name: payloads
-- The payload of each event, and whose it is.
SELECT e.event_seq, e.resource_id, b.content
FROM events AS e LEFT JOIN blobs AS b ON b.blob_hash = e.payload_hash
ORDER BY e.event_seq

-- name: links
-- The values that events keep alive, in the order of the events.
SELECT event_seq, blob_hash FROM event_blobs ORDER BY event_seq, blob_hash

-- name: patches
-- Every patch of a view.
SELECT d.run_id, b.content FROM viewer_deltas AS d JOIN blobs AS b ON b.blob_hash = d.patch_hash

-- name: next_resource
-- The resource of an event, or of the first after it.
SELECT resource_id FROM events WHERE event_seq >= :event_seq ORDER BY event_seq LIMIT 1

-- name: users
-- Whose a value is: the runs and resources whose rows name it. Each column that names a value has an index.
SELECT DISTINCT run_id, resource_id FROM (
    SELECT run_id, NULL AS resource_id FROM runs WHERE input_hash = :digest
    UNION ALL SELECT run_id, NULL FROM runs WHERE final_output_hash = :digest
    UNION ALL SELECT run_id, NULL FROM runs WHERE launch_options_hash = :digest
    UNION ALL SELECT run_id, NULL FROM runs WHERE error_hash = :digest
    UNION ALL SELECT r.run_id, NULL
    FROM workflow_definitions AS d JOIN runs AS r ON r.definition_digest = d.definition_digest
    WHERE d.definition_hash = :digest
    UNION ALL SELECT run_id, NULL FROM run_queue WHERE error_hash = :digest
    UNION ALL SELECT run_id, NULL FROM node_attempts WHERE prompt_hash = :digest
    UNION ALL SELECT run_id, NULL FROM node_attempts WHERE output_hash = :digest
    UNION ALL SELECT run_id, NULL FROM node_attempts WHERE receipt_hash = :digest
    UNION ALL SELECT run_id, NULL FROM node_attempts WHERE error_hash = :digest
    UNION ALL SELECT run_id, NULL FROM node_attempts WHERE settings_hash = :digest
    UNION ALL SELECT run_id, NULL FROM interactive_requests WHERE contract_hash = :digest
    UNION ALL SELECT q.run_id, NULL
    FROM interactive_submissions AS s JOIN interactive_requests AS q ON q.request_id = s.request_id
    WHERE s.payload_hash = :digest
    UNION ALL SELECT q.run_id, NULL
    FROM interactive_submissions AS s JOIN interactive_requests AS q ON q.request_id = s.request_id
    WHERE s.receipt_hash = :digest
    UNION ALL SELECT a.run_id, NULL
    FROM workflow_updates AS u JOIN node_attempts AS a ON a.attempt_id = u.attempt_id
    WHERE u.data_hash = :digest
    UNION ALL SELECT origin_run_id, NULL FROM workflow_settings WHERE initial_hash = :digest
    UNION ALL SELECT origin_run_id, NULL FROM workflow_settings WHERE current_hash = :digest
    UNION ALL SELECT s.origin_run_id, NULL
    FROM workflow_setting_changes AS c JOIN workflow_settings AS s ON s.scope_id = c.scope_id
    WHERE c.patch_hash = :digest
    UNION ALL SELECT s.origin_run_id, NULL
    FROM workflow_setting_changes AS c JOIN workflow_settings AS s ON s.scope_id = c.scope_id
    WHERE c.before_hash = :digest
    UNION ALL SELECT s.origin_run_id, NULL
    FROM workflow_setting_changes AS c JOIN workflow_settings AS s ON s.scope_id = c.scope_id
    WHERE c.after_hash = :digest
    UNION ALL SELECT run_id, NULL FROM workflow_follow_ups WHERE prompt_hash = :digest
    UNION ALL SELECT run_id, NULL FROM workflow_follow_ups WHERE reason_hash = :digest
    UNION ALL SELECT run_id, NULL FROM session_segments WHERE binding_hash = :digest
    UNION ALL SELECT run_id, NULL FROM session_segments WHERE failure_hash = :digest
    UNION ALL SELECT run_id, NULL FROM session_entries WHERE entry_hash = :digest
    UNION ALL SELECT run_id, NULL FROM session_events WHERE payload_hash = :digest
    UNION ALL SELECT run_id, NULL FROM human_decisions WHERE subject_hash = :digest
    UNION ALL SELECT run_id, NULL FROM human_decisions WHERE presentation_hash = :digest
    UNION ALL SELECT run_id, NULL FROM human_decisions WHERE choices_hash = :digest
    UNION ALL SELECT run_id, NULL FROM human_decisions WHERE default_response_hash = :digest
    UNION ALL SELECT run_id, NULL FROM human_decisions WHERE request_hash = :digest
    UNION ALL SELECT d.run_id, NULL
    FROM human_decision_resolutions AS r JOIN human_decisions AS d ON d.decision_id = r.decision_id
    WHERE r.response_hash = :digest
    UNION ALL SELECT d.run_id, NULL
    FROM human_decision_submissions AS s JOIN human_decisions AS d ON d.decision_id = s.decision_id
    WHERE s.candidate_hash = :digest
    UNION ALL SELECT d.run_id, NULL
    FROM human_decision_submissions AS s JOIN human_decisions AS d ON d.decision_id = s.decision_id
    WHERE s.result_hash = :digest
    UNION ALL SELECT NULL, resource_id FROM controller_resources WHERE spec_hash = :digest
    UNION ALL SELECT NULL, resource_id FROM controller_resources WHERE status_hash = :digest
    UNION ALL SELECT NULL, c.resource_id
    FROM controller_queue AS q JOIN controller_resources AS c ON c.controller_resource_id = q.controller_resource_id
    WHERE q.last_error_hash = :digest
    UNION ALL SELECT run_id, NULL FROM controller_workflows WHERE error_hash = :digest
    UNION ALL SELECT NULL, source_resource_id FROM effects WHERE payload_hash = :digest
    UNION ALL SELECT NULL, source_resource_id FROM effects WHERE result_hash = :digest
    UNION ALL SELECT NULL, source_resource_id FROM effects WHERE error_hash = :digest
    UNION ALL SELECT NULL, e.source_resource_id
    FROM effect_attempts AS t JOIN effects AS e ON e.effect_id = t.effect_id
    WHERE t.result_hash = :digest
    UNION ALL SELECT NULL, e.source_resource_id
    FROM effect_attempts AS t JOIN effects AS e ON e.effect_id = t.effect_id
    WHERE t.error_hash = :digest
    UNION ALL SELECT run_id, NULL FROM workflow_messages WHERE content_hash = :digest
    UNION ALL SELECT d.run_id, NULL
    FROM channel_messages AS m JOIN human_decisions AS d ON d.decision_id = m.decision_id
    WHERE m.content_hash = :digest
    UNION ALL SELECT run_id, NULL FROM viewer_deltas WHERE patch_hash = :digest
    UNION ALL SELECT run_id, NULL FROM viewer_session_checkpoints WHERE state_hash = :digest
    UNION ALL SELECT run_id, NULL FROM host_commands WHERE receipt_hash = :digest
    UNION ALL SELECT run_id, NULL FROM host_commands WHERE error_hash = :digest
    UNION ALL SELECT w.run_id, NULL
    FROM worker_messages AS m JOIN run_workers AS w ON w.worker_epoch = m.worker_epoch
    WHERE m.result_hash = :digest
    UNION ALL SELECT w.run_id, NULL
    FROM worker_messages AS m JOIN run_workers AS w ON w.worker_epoch = m.worker_epoch
    WHERE m.error_hash = :digest
    UNION ALL SELECT run_id, NULL FROM run_workers WHERE launch_envelope_hash = :digest
    UNION ALL SELECT run_id, NULL FROM run_workers WHERE diagnostic_hash = :digest
    UNION ALL SELECT NULL, resource_id FROM events WHERE payload_hash = :digest
    UNION ALL SELECT NULL, e.resource_id
    FROM event_blobs AS l JOIN events AS e ON e.event_seq = l.event_seq
    WHERE l.blob_hash = :digest)
LIMIT 100
