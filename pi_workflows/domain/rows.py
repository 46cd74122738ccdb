"""Complete rows as events carry them: the column names of the schema, digests as hex."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pi_workflows.base.sql import SqlValue
from pi_workflows.domain.fact import Fact, Integer

RunStatus: TypeAlias = Literal[
    "queued", "running", "waiting", "completed", "failed", "timed_out", "cancelled"
]
QueueStatus: TypeAlias = Literal[
    "queued", "starting", "running", "parked", "done", "failed", "cancelled"
]
AttemptStatus: TypeAlias = Literal[
    "pending",
    "running",
    "waiting",
    "interrupted",
    "completed",
    "failed",
    "timed_out",
    "cancelled",
]
RequestStatus: TypeAlias = Literal["pending", "settled", "cancelled"]
EffectStatus: TypeAlias = Literal[
    "pending", "applying", "applied", "rejected", "ambiguous", "cancelled"
]
Provenance: TypeAlias = Literal["human", "timeout_policy", "explicit_cancel", "expired_no_default"]
CandidateOutcome: TypeAlias = Literal["won", "adopted", "already_resolved", "rejected"]
FollowUpStatus: TypeAlias = Literal["queued", "removed", "cancelled"]


class Row(Fact):
    """Values of columns and nothing else."""

    def columns(self) -> dict[str, SqlValue]:
        """Return the values by their columns, as statements take them; not to be changed."""
        return vars(self)


class ProjectRow(Row):
    """A row of `projects`."""

    project_id: str
    canonical_path: str
    created_at: Integer


class DefinitionRow(Row):
    """A row of `workflow_definitions`."""

    definition_digest: str
    workflow_name: str
    definition_hash: str
    created_at: Integer


class RunRow(Row):
    """A row of `runs`, as it is when the run is queued."""

    run_id: str
    resource_id: str
    project_id: str | None
    parent_run_id: str | None
    root_run_id: str
    recovery_root_run_id: str | None
    recovery_source_message_id: str | None
    lineage_kind: Literal["restart"] | None
    restart_number: Integer
    parent_run_revision: Integer | None
    definition_digest: str
    workflow_ref: str
    launch_options_hash: str
    title: str | None
    status: RunStatus
    paused: Integer
    status_detail: str | None
    input_hash: str
    final_output_hash: str | None
    error_hash: str | None
    created_at: Integer
    updated_at: Integer
    finished_at: Integer | None


class SourceRow(Row):
    """A row of `run_sources`."""

    run_id: str
    mount_path: str
    source_type: Literal["builtin", "file"]
    source_ref: str
    source_revision: str


class BindingRow(Row):
    """A row of `run_bindings`."""

    run_id: str
    origin_session_id: str
    execution_mode: Literal["interactive", "headless"]
    created_at: Integer


class QueueRow(Row):
    """A row of `run_queue`, as it is when the run is queued."""

    run_id: str
    status: QueueStatus
    available_at: Integer
    origin_session_id: str | None
    consecutive_errors: Integer
    error_code: str | None
    error_hash: str | None
    created_at: Integer
    updated_at: Integer
    started_at: Integer | None
    finished_at: Integer | None


class AttemptRow(Row):
    """A row of `node_attempts`, as it is when the attempt starts."""

    attempt_id: str
    run_id: str
    node_id: str
    visit_number: Integer
    attempt_number: Integer
    node_type: str
    status: AttemptStatus
    prompt_hash: str | None
    output_hash: str | None
    receipt_hash: str | None
    error_hash: str | None
    settings_scope_id: str | None
    settings_change_number: Integer | None
    settings_hash: str | None
    started_at: Integer | None
    timeout_ms: Integer | None
    finished_at: Integer | None
    created_at: Integer
    updated_at: Integer


class IntervalRow(Row):
    """A row of `attempt_active_intervals`, as it is when the interval opens."""

    attempt_id: str
    interval_number: Integer
    started_at: Integer
    observed_at: Integer
    ended_at: Integer | None
    elapsed_ms: Integer


class RequestRow(Row):
    """A row of `interactive_requests`, as it is when the request is made."""

    request_id: str
    run_id: str
    attempt_id: str
    target_session_id: str
    kind: Literal["agent", "assistant", "checkpoint", "decision"]
    contract_hash: str
    revision: Integer
    status: RequestStatus
    accepted_submission_id: str | None
    created_at: Integer
    updated_at: Integer
    settled_at: Integer | None
    consumed_at: Integer | None


class SubmissionRow(Row):
    """A row of `interactive_submissions`."""

    submission_id: str
    request_id: str
    idempotency_key: str
    request_revision: Integer
    payload_hash: str
    outcome: Literal["validating", "accepted", "rejected", "adopted"]
    receipt_hash: str | None
    submitted_at: Integer


class SubmissionChange(Row):
    """Every column of `interactive_submissions` that may change after the answer arrived."""

    submission_id: str
    outcome: Literal["accepted", "rejected"]
    receipt_hash: str | None


class DecisionRow(Row):
    """A row of `human_decisions`. It never changes."""

    decision_id: str
    resource_id: str
    run_id: str
    attempt_id: str
    audience: str
    title: str
    subject_hash: str
    presentation_hash: str
    choices_hash: str
    request_digest: str
    presentation_revision: Integer
    deadline_at: Integer | None
    default_response_hash: str | None
    request_hash: str
    created_at: Integer


class ResolutionRow(Row):
    """A row of `human_decision_resolutions` but for who decided, which the event's column names."""

    decision_id: str
    outcome: Literal["accepted", "cancelled"]
    provenance: Provenance
    response_hash: str | None
    reason: str | None
    channel: str | None
    request_digest: str
    resolved_at: Integer


class CandidateRow(Row):
    """A row of `human_decision_submissions` but for who gave it, which the event's column names.

    `attempt_id` is the answer's own identity, of no node.
    """

    decision_id: str
    attempt_id: str
    source: Literal["human", "policy", "control", "channel"]
    channel: str | None
    candidate_hash: str
    outcome: CandidateOutcome
    result_hash: str | None
    submitted_at: Integer


class UpdateRow(Row):
    """A row of `workflow_updates`."""

    update_id: str
    run_id: str
    attempt_id: str
    update_seq: Integer
    run_revision: Integer
    update_type: str
    update_key: str
    data_hash: str
    recorded_at: Integer


class SettingsRow(Row):
    """A row of `workflow_settings`, as it is when the scope opens."""

    scope_id: str
    resource_id: str
    origin_run_id: str
    active_run_id: str
    mount_path: str
    invocation: Integer
    initial_hash: str
    current_hash: str
    created_at: Integer
    updated_at: Integer


class SettingsChangeRow(Row):
    """A row of `workflow_setting_changes`, without its actor, whom the event itself names."""

    change_id: str
    scope_id: str
    request_id: str
    change_number: Integer
    source_type: str
    patch_hash: str
    before_hash: str
    after_hash: str
    accepted_at: Integer


class FollowUpRow(Row):
    """A row of `workflow_follow_ups` as it is queued, without its actor, as above."""

    follow_up_id: str
    resource_id: str
    run_id: str
    request_id: str
    order_number: Integer
    target_session_id: str
    source_type: str
    prompt_hash: str
    status: FollowUpStatus
    reason_hash: str | None
    created_at: Integer
    updated_at: Integer


class FollowUpChange(Row):
    """Every column of `workflow_follow_ups` that may change after it was queued."""

    follow_up_id: str
    status: FollowUpStatus
    reason_hash: str


class EffectRow(Row):
    """A row of `effects`, as it is when the effect is reserved."""

    effect_id: str
    resource_id: str
    source_resource_id: str
    source_revision: Integer
    effect_type: str
    idempotency_key: str
    payload_hash: str
    owner_scope: Literal["run", "controller", "channel", "system"]
    status: EffectStatus
    attempt_count: Integer
    next_attempt_at: Integer | None
    result_hash: str | None
    external_ref: str | None
    error_hash: str | None
    created_at: Integer
    updated_at: Integer
    settled_at: Integer | None


class RunChange(Row):
    """Every column of `runs` that may change after the run was queued."""

    status: RunStatus
    paused: Integer
    status_detail: str | None = None
    final_output_hash: str | None = None
    error_hash: str | None = None
    finished_at: Integer | None = None


class QueueChange(Row):
    """Every column of `run_queue` that may change after the run was queued."""

    status: QueueStatus
    available_at: Integer
    consecutive_errors: Integer = 0
    error_code: str | None = None
    error_hash: str | None = None
    started_at: Integer | None = None
    finished_at: Integer | None = None


class AttemptChange(Row):
    """Every column of `node_attempts` that may change after the attempt started."""

    attempt_id: str
    status: AttemptStatus
    output_hash: str | None = None
    receipt_hash: str | None = None
    error_hash: str | None = None
    finished_at: Integer | None = None


class ClosedInterval(Row):
    """The end of an active interval."""

    attempt_id: str
    interval_number: Integer
    ended_at: Integer
    elapsed_ms: Integer


class RequestChange(Row):
    """Every column of `interactive_requests` that may change after the request was made."""

    request_id: str
    revision: Integer
    status: RequestStatus
    accepted_submission_id: str | None = None
    settled_at: Integer | None = None
    consumed_at: Integer | None = None


class EffectChange(Row):
    """Every column of `effects` that may change after the effect was reserved."""

    effect_id: str
    status: EffectStatus
    attempt_count: Integer
    next_attempt_at: Integer | None = None
    result_hash: str | None = None
    external_ref: str | None = None
    error_hash: str | None = None
    settled_at: Integer | None = None


class TryStarted(Row):
    """A new row of `effect_attempts`."""

    effect_id: str
    attempt_number: Integer
    owner_id: str
    lease_generation: Integer
    started_at: Integer


class TryFinished(Row):
    """The end of an open row of `effect_attempts`."""

    effect_id: str
    attempt_number: Integer
    finished_at: Integer
    outcome: Literal["applied", "rejected", "ambiguous", "interrupted"]
    result_hash: str | None = None
    error_hash: str | None = None
