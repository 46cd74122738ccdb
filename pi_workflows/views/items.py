"""One item of a page: a step, an event of the trace, an update. Rows and facts in, documents out.

The client protocol, "Items". Times are milliseconds since the epoch.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from pi_workflows.base.canonical import Json
from pi_workflows.base.sql import Read
from pi_workflows.domain.attempt.events import AttemptSettled, AttemptStarted, UpdateRecorded
from pi_workflows.domain.fact import Event
from pi_workflows.domain.request.events import RequestSubmitted
from pi_workflows.domain.run.events import (
    LeaseClaimed,
    LeaseReleased,
    RunCancelled,
    RunEffectAmbiguous,
    RunEnded,
    RunEvent,
    RunParked,
    RunPaused,
    RunQueued,
    RunRequeued,
    RunWaiting,
)
from pi_workflows.domain.run.state import NODE_OUTCOME
from pi_workflows.views.value import Value, embedded

Settled = Literal["completed", "failed", "timed_out", "cancelled"]


class StepRow(NamedTuple):
    """A settled attempt with the values that it names."""

    attempt_id: str
    node_id: str
    visit_number: int
    attempt_number: int
    node_type: str
    status: Settled
    started_at: int | None
    finished_at: int | None
    settings_scope_id: str | None
    settings_change_number: int | None
    settings_hash: bytes | None
    prompt_hash: bytes | None
    prompt_media: str | None
    prompt_bytes: int | None
    prompt_content: bytes | None
    output_hash: bytes | None
    output_media: str | None
    output_bytes: int | None
    output_content: bytes | None
    receipt_hash: bytes | None
    receipt_media: str | None
    receipt_bytes: int | None
    receipt_content: bytes | None
    error_hash: bytes | None
    error_media: str | None
    error_bytes: int | None
    error_content: bytes | None
    first_entry_id: str | None
    last_entry_id: str | None
    text_hash: bytes | None
    text_media: str | None
    text_bytes: int | None
    text_content: bytes | None

    @property
    def text(self) -> Value | None:
        """The account of the text that a model gave as the output."""
        return Value.of(self.text_hash, self.text_media, self.text_bytes, self.text_content)

    @property
    def prompt(self) -> Value | None:
        """What the node asked."""
        return Value.of(self.prompt_hash, self.prompt_media, self.prompt_bytes, self.prompt_content)

    @property
    def output(self) -> Value | None:
        """What the attempt gave."""
        return Value.of(self.output_hash, self.output_media, self.output_bytes, self.output_content)

    @property
    def receipt(self) -> Value | None:
        """The account of what it did."""
        return Value.of(
            self.receipt_hash, self.receipt_media, self.receipt_bytes, self.receipt_content
        )

    @property
    def error(self) -> Value | None:
        """What went wrong."""
        return Value.of(self.error_hash, self.error_media, self.error_bytes, self.error_content)


def step_item(read: Read, row: StepRow) -> dict[str, Json]:
    """Return a step: a settled attempt with its values."""
    item: dict[str, Json] = {
        "attemptId": row.attempt_id,
        "nodeId": row.node_id,
        "nodeType": row.node_type,
        "visit": row.visit_number,
        "attemptNumber": row.attempt_number,
        "outcome": NODE_OUTCOME[row.status],
        "startedAt": row.started_at,
        "finishedAt": row.finished_at,
        "prompt": embedded(read, row.prompt),
        "output": embedded(read, row.output),
    }
    if row.error_hash is not None:
        item["error"] = embedded(read, row.error)
    if row.receipt_hash is not None:
        item["action"] = embedded(read, row.receipt)
    if row.settings_hash is not None:
        item["settingsScopeId"] = row.settings_scope_id
        item["settingsChangeNumber"] = row.settings_change_number
        item["settingsHash"] = row.settings_hash.hex()
    if row.text_hash is not None:
        item["assistantMessage"] = embedded(read, row.text)
    if row.first_entry_id is not None and row.last_entry_id is not None:
        item["conversation"] = {
            "firstEntryId": row.first_entry_id,
            "lastEntryId": row.last_entry_id,
        }
    return item


class UpdateRow(NamedTuple):
    """A progress update and where it came from."""

    update_id: str
    run_revision: int
    recorded_at: int
    node_id: str
    attempt_id: str
    update_type: str
    update_key: str
    data_hash: bytes
    data_media: str
    data_bytes: int
    data_content: bytes | None

    @property
    def data(self) -> Value | None:
        """What was published."""
        return Value.of(self.data_hash, self.data_media, self.data_bytes, self.data_content)


def update_item(read: Read, run_id: str, row: UpdateRow) -> dict[str, Json]:
    """Return an update. `seq` is its place in the run's trace."""
    return {
        "updateId": row.update_id,
        "seq": row.run_revision,
        "at": row.recorded_at,
        "runId": run_id,
        "nodeId": row.node_id,
        "attemptId": row.attempt_id,
        "type": row.update_type,
        "key": row.update_key,
        "data": embedded(read, row.data),
    }


def trace_item(
    run_id: str,
    seq: int,
    at_ms: int,
    fact: Event,
    *,
    actor: str | None = None,
    node_id: str | None = None,
) -> dict[str, Json]:
    """Return an event of the run's own resource as an item of its trace.

    Args:
        run_id: The run.
        seq: The event's resource revision, which is its place in the trace.
        at_ms: When it was decided.
        fact: The event.
        actor: The class of who caused it, which is told of a pause and of a cancellation.
        node_id: The node of the event's attempt, where the event itself does not name it.

    Returns:
        The item. Its payload holds facts; of a value it says that it is stored.
    """
    attempt_id = attempt_of(fact)
    item: dict[str, Json] = {
        "seq": seq,
        "at": at_ms,
        "runId": run_id,
        "scope": "node" if isinstance(fact, _NODE_EVENTS) else "run",
        "type": type(fact).type,
        "payload": _payload(fact),
    }
    if actor is not None and isinstance(fact, _DONE_TO_IT):
        item["payload"] = {**_payload(fact), "actor": actor}
    node = node_of(fact) or node_id
    if node is not None:
        item["nodeId"] = node
    if attempt_id is not None:
        item["attemptId"] = attempt_id
    return item


def node_of(fact: Event) -> str | None:
    """Return the node that an event names, or None."""
    match fact:
        case AttemptStarted():
            return fact.attempt.node_id
        case AttemptSettled() | UpdateRecorded():
            return fact.node_id
        case _:
            return None


def attempt_of(fact: Event) -> str | None:
    """Return the attempt that an event names, or None."""
    match fact:
        case AttemptStarted() | AttemptSettled():
            return fact.attempt.attempt_id
        case UpdateRecorded():
            return fact.update.attempt_id
        case RunEvent(attempt=attempt) if attempt is not None:
            return attempt.attempt_id
        case _:
            return None


_NODE_EVENTS: Final = (AttemptStarted, AttemptSettled, UpdateRecorded)
_DONE_TO_IT: Final = (RunPaused, RunCancelled)


def _payload(fact: Event) -> dict[str, Json]:
    """Return what an item of the trace says beside its place, its time and its node."""
    match fact:
        case AttemptStarted() | AttemptSettled() | UpdateRecorded():
            return _node_payload(fact)
        case RunQueued():
            return _queued_payload(fact)
        case RunEnded(run=run) if run is not None:
            return {
                **_stored(error=run.error_hash, finalOutput=run.final_output_hash),
                "status": run.status,
            }
        case _:
            return _run_payload(fact)


def _node_payload(fact: AttemptStarted | AttemptSettled | UpdateRecorded) -> dict[str, Json]:
    """Return what an event of a node says."""
    match fact:
        case AttemptStarted(attempt=attempt):
            return {
                **_stored(prompt=attempt.prompt_hash),
                "nodeType": attempt.node_type,
                "visit": attempt.visit_number,
                "attemptNumber": attempt.attempt_number,
                "timeoutMs": attempt.timeout_ms or 0,
            }
        case AttemptSettled(attempt=attempt):
            payload: dict[str, Json] = {
                **_stored(
                    output=attempt.output_hash,
                    action=attempt.receipt_hash,
                    error=attempt.error_hash,
                ),
                "outcome": NODE_OUTCOME[attempt.status],
                "stepIndex": fact.step_index,
            }
            if fact.interval is not None:
                payload["elapsedMs"] = fact.interval.elapsed_ms
            return payload
        case UpdateRecorded(update=update):
            return {
                **_stored(data=update.data_hash),
                "updateId": update.update_id,
                "type": update.update_type,
                "key": update.update_key,
            }


def _queued_payload(fact: RunQueued) -> dict[str, Json]:
    """Return what the first event of a run says."""
    payload: dict[str, Json] = {
        **_stored(input=fact.run.input_hash),
        "workflowName": fact.definition.workflow_name,
        "definitionDigest": f"sha256:{fact.definition.definition_digest}",
        "projectPath": fact.project.canonical_path,
        "executionMode": fact.binding.execution_mode,
    }
    if fact.run.title is not None:
        payload["title"] = fact.run.title
    if fact.run.parent_run_id is not None:
        payload["parentRunId"] = fact.run.parent_run_id
        payload["restartNumber"] = fact.run.restart_number
    return payload


def _run_payload(fact: Event) -> dict[str, Json]:
    """Return what an event of the run itself says."""
    match fact:
        case RunEffectAmbiguous():
            return {"code": fact.code, "detail": fact.detail, "effectId": fact.effect_id}
        case RunParked():
            return {"code": fact.code, "detail": fact.detail}
        case RunPaused():
            return {"detail": fact.detail}
        case RunWaiting(request=request):
            return {
                **_stored(contract=request.contract_hash),
                "requestId": request.request_id,
                "kind": request.kind,
                "requestRevision": request.revision,
            }
        case RequestSubmitted(submission=submission):
            return {
                **_stored(answer=submission.payload_hash),
                "requestId": submission.request_id,
                "submissionId": submission.submission_id,
                "outcome": submission.outcome,
            }
        case RunRequeued() | LeaseReleased():
            payload: dict[str, Json] = {"reason": fact.reason}
            if fact.queue is not None and fact.queue.status == "queued":
                payload["availableAt"] = fact.queue.available_at
            return payload
        case LeaseClaimed(lease=lease):
            return {"generation": lease.generation} if lease is not None else {}
        case _:
            return {}


def _stored(**hashes: str | None) -> dict[str, Json]:
    """Return `<name>Stored` for each value that the event names."""
    return {f"{name}Stored": True for name, digest in hashes.items() if digest is not None}
