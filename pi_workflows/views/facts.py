"""What every view of a run begins with: its rows, its claim and its live process, and the display.

The display is computed here each time and stored nowhere (decision "display").
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.display import Display, Facts, RequestKind, display
from pi_workflows.domain.rows import AttemptStatus, QueueStatus, RequestStatus, RunStatus
from pi_workflows.domain.session_rows import MessageStatus
from pi_workflows.protocol.runs import QueueItem

SQL: Final = load(__package__, "facts.sql")


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """What no database holds.

    Attributes:
        now_ms: Wall time by which claims are judged.
        live_runs: The runs whose exact runner process lives.
        busy_sessions: The sessions whose coordinator is connected, has reported its branch, and
            works.
    """

    now_ms: int
    live_runs: AbstractSet[str] = frozenset()
    busy_sessions: AbstractSet[str] = frozenset()


class RunFacts(NamedTuple):
    """One run, without bodies. Columns of other tables than `runs` carry their table's name."""

    run_id: str
    resource_id: str
    run_revision: int
    revision: int
    retained_from_revision: int
    status: RunStatus
    paused: int
    status_detail: str | None
    title: str | None
    workflow_ref: str
    definition_digest: bytes
    definition_hash: bytes
    workflow_name: str
    project_id: str | None
    project_path: str | None
    parent_run_id: str | None
    root_run_id: str
    lineage_kind: Literal["restart"] | None
    restart_number: int
    parent_run_revision: int | None
    created_at: int
    updated_at: int
    finished_at: int | None
    input_hash: bytes
    final_output_hash: bytes | None
    error_hash: bytes | None
    queue_status: QueueStatus
    queue_error_code: str | None
    queue_error_hash: bytes | None
    queue_session_id: str | None
    queue_created_at: int
    queue_updated_at: int
    queue_started_at: int | None
    queue_finished_at: int | None
    origin_session_id: str
    execution_mode: Literal["interactive", "headless"]
    source_type: Literal["builtin", "file"]
    source_ref: str
    source_revision: str
    owner_type: str | None
    expires_at: int | None
    attempt_id: str | None
    node_id: str | None
    visit_number: int | None
    attempt_status: AttemptStatus | None
    request_id: str | None
    request_kind: RequestKind | None
    request_status: RequestStatus | None
    request_consumed_at: int | None
    has_ambiguous_effect: int
    has_open_turn: int
    step_message_status: MessageStatus | None

    @property
    def definition_name(self) -> str:
        """The definition's digest as documents write it."""
        return f"sha256:{self.definition_digest.hex()}"

    @property
    def is_request_pending(self) -> bool:
        """Whether the run waits for an answer."""
        return self.request_status == "pending"

    @property
    def started_at(self) -> int:
        """When its first runner was ready; until then, when it was accepted."""
        return self.queue_started_at or self.created_at

    def display(self, process: ProcessFacts, error_message: str | None = None) -> Display:
        """Decide what people are told.

        Args:
            process: What lives now.
            error_message: The stored error, where bodies are read.

        Returns:
            The display.
        """
        has_claim = self.owner_type is not None and (self.expires_at or 0) > process.now_ms
        return display(
            Facts(
                status=self.status,
                queue_status=self.queue_status,
                is_paused=self.paused == 1,
                has_ambiguous_effect=self.has_ambiguous_effect == 1,
                is_runner_live=has_claim and self.run_id in process.live_runs,
                is_turn_open=self.has_open_turn == 1
                and self.origin_session_id in process.busy_sessions,
                is_request_delivered=self.step_message_status == "sent",
                request_kind=self.request_kind if self.is_request_pending else None,
                is_answer_accepted=self.request_status == "settled"
                and self.request_consumed_at is None,
                error_code=self.error_code,
                error_message=error_message,
            )
        )

    @property
    def error_code(self) -> str | None:
        """Why it ended or is parked, by code; a failure whose code no row holds is `failed`."""
        if self.queue_error_code is not None:
            return self.queue_error_code
        return self.status if self.error_hash is not None else None

    def source(self) -> Json:
        """Return where the workflow comes from."""
        return {
            "type": self.source_type,
            "ref": self.source_ref,
            "revision": self.source_revision,
        }

    def manifest(self) -> dict[str, Json]:
        """Return `pi-workflows.run-manifest.v1`: the run's identity and stored status."""
        manifest: dict[str, Json] = {
            "schema": "pi-workflows.run-manifest.v1",
            "runId": self.run_id,
            "workflowName": self.workflow_name,
            "workflowSource": self.source(),
            "startedAt": self.started_at,
            "status": self.status,
            "traceSchema": "pi-workflows.trace-event.v1",
            # Nothing of a run is in a file: each part is asked for.
            "paths": {"workflow": "server", "state": "server", "trace": "server"},
        }
        if self.finished_at is not None:
            manifest["finishedAt"] = self.finished_at
        return manifest

    def queue(self) -> QueueItem:
        """Return the run as it stands in the queue."""
        return QueueItem(
            run_id=self.run_id,
            workflow_name=self.workflow_name,
            workflow_source_ref=self.workflow_ref,
            initialized=self.queue_started_at is not None,
            definition_digest=self.definition_name,
            status=self.queue_status,
            origin_session_id=self.queue_session_id,
            execution_mode=self.execution_mode,
            parent_run_id=self.parent_run_id,
            root_run_id=self.root_run_id,
            lineage_kind=self.lineage_kind,
            restart_number=self.restart_number,
            parent_run_revision=self.parent_run_revision,
            error_code=self.queue_error_code,
            created_at=self.queue_created_at,
            updated_at=self.queue_updated_at,
            started_at=self.queue_started_at,
            finished_at=self.queue_finished_at,
        )


def run_facts(read: Read, run_id: str) -> RunFacts:
    """Return one run. Raises NotFound (`runMissing`) when there is none of that name."""
    found = many_facts(read, (run_id,))
    if not found:
        raise NotFound(f"There is no run {run_id}.", code="runMissing", field="runId")
    return found[0]


def many_facts(read: Read, run_ids: Sequence[str]) -> list[RunFacts]:
    """Return those of the runs that exist, in the order of the question."""
    asked: list[Json] = list(run_ids)
    return read.all(RunFacts, SQL["run_facts"], run_ids=canonical.encode(asked).decode())
