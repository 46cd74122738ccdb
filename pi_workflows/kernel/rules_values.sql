-- As rules_log.sql: one row for each violation, the run that it concerns, or NULL and the resource.

-- Content -------------------------------------------------------------------------------------------------------------

-- name: media
-- What is read as JSON is stored as JSON. Errors, reasons, prompts, messages and diagnoses are text, which may be JSON.
WITH texts (digest) AS MATERIALIZED (SELECT blob_hash FROM blobs WHERE media_type <> 'application/json')

SELECT d.run_id, NULL FROM texts AS t CROSS JOIN runs AS d ON d.input_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN runs AS d ON d.final_output_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN runs AS d ON d.launch_options_hash = t.digest
UNION ALL
SELECT r.run_id, NULL FROM texts AS t CROSS JOIN workflow_definitions AS d ON d.definition_hash = t.digest
LEFT JOIN runs AS r ON r.definition_digest = d.definition_digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN node_attempts AS d ON d.output_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN node_attempts AS d ON d.receipt_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN node_attempts AS d ON d.settings_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN interactive_requests AS d ON d.contract_hash = t.digest
UNION ALL
SELECT o.run_id, NULL FROM texts AS t CROSS JOIN interactive_submissions AS d ON d.payload_hash = t.digest
JOIN interactive_requests AS o ON o.request_id = d.request_id
UNION ALL
SELECT o.run_id, NULL FROM texts AS t CROSS JOIN workflow_updates AS d ON d.data_hash = t.digest
JOIN node_attempts AS o ON o.attempt_id = d.attempt_id
UNION ALL
SELECT d.origin_run_id, NULL FROM texts AS t CROSS JOIN workflow_settings AS d ON d.initial_hash = t.digest
UNION ALL
SELECT d.origin_run_id, NULL FROM texts AS t CROSS JOIN workflow_settings AS d ON d.current_hash = t.digest
UNION ALL
SELECT o.origin_run_id, NULL FROM texts AS t CROSS JOIN workflow_setting_changes AS d ON d.patch_hash = t.digest
JOIN workflow_settings AS o ON o.scope_id = d.scope_id
UNION ALL
SELECT o.origin_run_id, NULL FROM texts AS t CROSS JOIN workflow_setting_changes AS d ON d.before_hash = t.digest
JOIN workflow_settings AS o ON o.scope_id = d.scope_id
UNION ALL
SELECT o.origin_run_id, NULL FROM texts AS t CROSS JOIN workflow_setting_changes AS d ON d.after_hash = t.digest
JOIN workflow_settings AS o ON o.scope_id = d.scope_id
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN session_segments AS d ON d.binding_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN session_entries AS d ON d.entry_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN session_events AS d ON d.payload_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN human_decisions AS d ON d.subject_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN human_decisions AS d ON d.presentation_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN human_decisions AS d ON d.choices_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN human_decisions AS d ON d.default_response_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN human_decisions AS d ON d.request_hash = t.digest
UNION ALL
SELECT o.run_id, NULL FROM texts AS t CROSS JOIN human_decision_resolutions AS d ON d.response_hash = t.digest
JOIN human_decisions AS o ON o.decision_id = d.decision_id
UNION ALL
SELECT o.run_id, NULL FROM texts AS t CROSS JOIN human_decision_submissions AS d ON d.candidate_hash = t.digest
JOIN human_decisions AS o ON o.decision_id = d.decision_id
UNION ALL
SELECT o.run_id, NULL FROM texts AS t CROSS JOIN human_decision_submissions AS d ON d.result_hash = t.digest
JOIN human_decisions AS o ON o.decision_id = d.decision_id
UNION ALL
SELECT NULL, d.resource_id FROM texts AS t CROSS JOIN controller_resources AS d ON d.spec_hash = t.digest
UNION ALL
SELECT NULL, d.resource_id FROM texts AS t CROSS JOIN controller_resources AS d ON d.status_hash = t.digest
UNION ALL
SELECT NULL, d.source_resource_id FROM texts AS t CROSS JOIN effects AS d ON d.payload_hash = t.digest
UNION ALL
SELECT NULL, d.source_resource_id FROM texts AS t CROSS JOIN effects AS d ON d.result_hash = t.digest
UNION ALL
SELECT NULL, o.source_resource_id FROM texts AS t CROSS JOIN effect_attempts AS d ON d.result_hash = t.digest
JOIN effects AS o ON o.effect_id = d.effect_id
UNION ALL
SELECT NULL, d.resource_id FROM texts AS t CROSS JOIN events AS d ON d.payload_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN host_commands AS d ON d.receipt_hash = t.digest
UNION ALL
SELECT o.run_id, NULL FROM texts AS t CROSS JOIN worker_messages AS d ON d.result_hash = t.digest
JOIN run_workers AS o ON o.worker_epoch = d.worker_epoch
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN run_workers AS d ON d.launch_envelope_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN viewer_deltas AS d ON d.patch_hash = t.digest
UNION ALL
SELECT d.run_id, NULL FROM texts AS t CROSS JOIN viewer_session_checkpoints AS d ON d.state_hash = t.digest
