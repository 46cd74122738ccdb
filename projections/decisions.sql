-- name: insert_decision
INSERT INTO human_decisions (
    decision_id, resource_id, run_id, attempt_id, audience, title, subject_hash, presentation_hash, choices_hash,
    request_digest, presentation_revision, deadline_at, default_response_hash, request_hash, created_at)
VALUES (
    :decision_id, :resource_id, :run_id, :attempt_id, :audience, :title, unhex(:subject_hash),
    unhex(:presentation_hash), unhex(:choices_hash), unhex(:request_digest), :presentation_revision, :deadline_at,
    unhex(:default_response_hash), unhex(:request_hash), :created_at)

-- name: insert_candidate
INSERT INTO human_decision_submissions (
    decision_id, attempt_id, source, actor_id, channel, candidate_hash, outcome, result_hash, submitted_at)
VALUES (
    :decision_id, :attempt_id, :source, :actor_id, :channel, unhex(:candidate_hash), :outcome, unhex(:result_hash),
    :submitted_at)

-- name: insert_resolution
INSERT INTO human_decision_resolutions (
    decision_id, outcome, provenance, response_hash, reason, channel, actor_id, request_digest, resolved_at)
VALUES (
    :decision_id, :outcome, :provenance, unhex(:response_hash), :reason, :channel, :actor_id, unhex(:request_digest),
    :resolved_at)
