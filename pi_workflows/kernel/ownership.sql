-- For each table of rows that belong to runs: the runs that a row belongs to, by the columns of its key. A row that belongs
-- to a resource names that instead, and `resources` says whose it is. Every read goes through an index: a CROSS JOIN
-- keeps the order that is written.

-- name: projects
SELECT run_id, NULL FROM runs WHERE project_id = :project_id ORDER BY run_id LIMIT 100

-- name: resources
-- An effect belongs to what it is an effect of.
WITH owned (resource_id) AS (
    SELECT :resource_id
    UNION ALL
    SELECT source_resource_id FROM effects WHERE resource_id = :resource_id
)
SELECT r.run_id, NULL FROM owned AS o CROSS JOIN runs AS r ON r.resource_id = o.resource_id
UNION ALL
SELECT s.origin_run_id, NULL FROM owned AS o CROSS JOIN workflow_settings AS s ON s.resource_id = o.resource_id
UNION ALL
SELECT f.run_id, NULL FROM owned AS o CROSS JOIN workflow_follow_ups AS f ON f.resource_id = o.resource_id
UNION ALL
SELECT s.run_id, NULL FROM owned AS o CROSS JOIN session_segments AS s ON s.resource_id = o.resource_id
UNION ALL
SELECT d.run_id, NULL FROM owned AS o CROSS JOIN human_decisions AS d ON d.resource_id = o.resource_id
UNION ALL
SELECT m.run_id, NULL FROM owned AS o CROSS JOIN workflow_messages AS m ON m.resource_id = o.resource_id
UNION ALL
SELECT run_id, NULL FROM (
    SELECT DISTINCT w.run_id
    FROM owned AS o
    CROSS JOIN controller_resources AS c ON c.resource_id = o.resource_id
    CROSS JOIN controller_workflows AS w ON w.controller_resource_id = c.controller_resource_id
    WHERE w.run_id IS NOT NULL
    ORDER BY 1 LIMIT 100)
UNION ALL
SELECT run_id, NULL FROM (
    SELECT DISTINCT d.run_id
    FROM owned AS o
    CROSS JOIN channels AS c ON c.resource_id = o.resource_id
    CROSS JOIN channel_messages AS m ON m.channel_id = c.channel_id
    CROSS JOIN human_decisions AS d ON d.decision_id = m.decision_id
    ORDER BY 1 LIMIT 100)

-- name: run_view_content
SELECT :run_id, NULL

-- name: leases
SELECT NULL, :resource_id

-- name: events
SELECT NULL, resource_id FROM events WHERE event_seq = :event_seq

-- name: event_blobs
SELECT NULL, resource_id FROM events WHERE event_seq = :event_seq

-- name: host_commands
SELECT run_id, NULL FROM host_commands WHERE request_id = :request_id

-- name: run_workers
SELECT run_id, NULL FROM run_workers WHERE worker_epoch = :worker_epoch

-- name: worker_messages
SELECT run_id, NULL FROM run_workers WHERE worker_epoch = :worker_epoch

-- name: interactive_requests
SELECT run_id, NULL FROM interactive_requests WHERE request_id = :request_id

-- name: interactive_submissions
SELECT q.run_id, NULL
FROM interactive_submissions AS s JOIN interactive_requests AS q ON q.request_id = s.request_id
WHERE s.submission_id = :submission_id

-- name: workflow_definitions
SELECT run_id, NULL FROM runs WHERE definition_digest = :definition_digest ORDER BY run_id LIMIT 100

-- name: runs
SELECT :run_id, NULL

-- name: run_sources
SELECT :run_id, NULL

-- name: run_bindings
SELECT :run_id, NULL

-- name: run_queue
SELECT :run_id, NULL

-- name: node_attempts
SELECT run_id, NULL FROM node_attempts WHERE attempt_id = :attempt_id

-- name: attempt_active_intervals
SELECT run_id, NULL FROM node_attempts WHERE attempt_id = :attempt_id

-- name: run_steps
SELECT :run_id, NULL

-- name: workflow_updates
SELECT u.run_id, NULL FROM workflow_updates AS u WHERE u.update_id = :update_id
UNION ALL
SELECT a.run_id, NULL
FROM workflow_updates AS u JOIN node_attempts AS a ON a.attempt_id = u.attempt_id
WHERE u.update_id = :update_id

-- name: workflow_settings
-- A continued scope is used by another run than the one that opened it.
SELECT origin_run_id, NULL FROM workflow_settings WHERE scope_id = :scope_id
UNION
SELECT active_run_id, NULL FROM workflow_settings WHERE scope_id = :scope_id

-- name: workflow_setting_changes
SELECT s.origin_run_id, NULL
FROM workflow_setting_changes AS c JOIN workflow_settings AS s ON s.scope_id = c.scope_id
WHERE c.change_id = :change_id

-- name: workflow_follow_ups
SELECT run_id, NULL FROM workflow_follow_ups WHERE follow_up_id = :follow_up_id

-- name: session_segments
SELECT run_id, NULL FROM session_segments WHERE segment_id = :segment_id

-- name: session_entries
SELECT run_id, NULL FROM session_entries WHERE segment_id = :segment_id AND entry_seq = :entry_seq

-- name: session_events
SELECT run_id, NULL FROM session_events WHERE segment_id = :segment_id AND event_seq = :event_seq

-- name: attempt_entries
SELECT run_id, NULL FROM node_attempts WHERE attempt_id = :attempt_id

-- name: human_decisions
SELECT run_id, NULL FROM human_decisions WHERE decision_id = :decision_id

-- name: human_decision_resolutions
SELECT run_id, NULL FROM human_decisions WHERE decision_id = :decision_id

-- name: human_decision_submissions
SELECT run_id, NULL FROM human_decisions WHERE decision_id = :decision_id

-- name: controller_resources
SELECT NULL, resource_id FROM controller_resources WHERE controller_resource_id = :controller_resource_id

-- name: controller_finalizers
SELECT NULL, resource_id FROM controller_resources WHERE controller_resource_id = :controller_resource_id

-- name: controller_queue
SELECT NULL, resource_id FROM controller_resources WHERE controller_resource_id = :controller_resource_id

-- name: controller_workflows
SELECT run_id, NULL FROM controller_workflows WHERE request_id = :request_id AND run_id IS NOT NULL

-- name: effects
SELECT NULL, source_resource_id FROM effects WHERE effect_id = :effect_id

-- name: effect_attempts
SELECT NULL, source_resource_id FROM effects WHERE effect_id = :effect_id

-- name: workflow_messages
SELECT run_id, NULL FROM workflow_messages WHERE workflow_message_id = :workflow_message_id

-- name: workflow_turns
SELECT run_id, NULL FROM workflow_turns WHERE workflow_turn_id = :workflow_turn_id

-- name: channels
SELECT NULL, resource_id FROM channels WHERE channel_id = :channel_id

-- name: channel_cursors
SELECT NULL, resource_id FROM channels WHERE channel_id = :channel_id

-- name: channel_messages
SELECT d.run_id, NULL
FROM channel_messages AS m JOIN human_decisions AS d ON d.decision_id = m.decision_id
WHERE m.message_id = :message_id

-- name: viewer_runs
SELECT :run_id, NULL

-- name: viewer_deltas
SELECT :run_id, NULL

-- name: viewer_session_checkpoints
SELECT :run_id, NULL
