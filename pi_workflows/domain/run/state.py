"""What a decision about a run depends on, and the parts that several decisions share."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, cast

from pi_workflows.base.errors import NotFound, TransitionDenied
from pi_workflows.base.sql import Read, load
from pi_workflows.definition.selector import NodeOutcome
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.fact import Draft, Event, LeaseClause, OwnerType
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.rows import (
    AttemptChange,
    AttemptStatus,
    ClosedInterval,
    QueueChange,
    QueueStatus,
    RunChange,
    RunStatus,
)

SQL: Final = load(__package__, "reads.sql")
TERMINAL: Final = frozenset({"completed", "failed", "timed_out", "cancelled"})
NODE_OUTCOME: Final[dict[str, NodeOutcome]] = {
    "completed": "ok",
    "failed": "failed",
    "timed_out": "timed_out",
    "cancelled": "cancelled",
}
QUEUE_TERMINAL: Final = frozenset({"done", "failed", "cancelled"})


class RunState(NamedTuple):
    """One run, its queue row, its claim and its binding."""

    run_id: str
    resource_id: str
    revision: int
    status: RunStatus
    paused: int
    status_detail: str | None
    final_output_hash: bytes | None
    error_hash: bytes | None
    definition_hash: bytes
    root_run_id: str
    restart_number: int
    queue_status: QueueStatus
    available_at: int
    consecutive_errors: int
    error_code: str | None
    queue_error_hash: bytes | None
    queue_started_at: int | None
    queue_finished_at: int | None
    generation: int
    owner_type: str | None
    owner_id: str | None
    expires_at: int | None
    origin_session_id: str
    execution_mode: str

    @property
    def is_terminal(self) -> bool:
        """Whether the run ended."""
        return self.status in TERMINAL

    @property
    def was_ready(self) -> bool:
        """Whether a runner has been ready for this run before."""
        return self.queue_started_at is not None

    @property
    def is_claimed(self) -> bool:
        """Whether somebody holds the run, live or expired."""
        return self.owner_type is not None

    def run(self, *, status: RunStatus | None = None, paused: int | None = None) -> RunChange:
        """Return the run's changeable columns, with these replaced."""
        return RunChange(
            status=status or self.status,
            paused=self.paused if paused is None else paused,
            status_detail=self.status_detail,
            final_output_hash=self.final_output_hash.hex() if self.final_output_hash else None,
            error_hash=self.error_hash.hex() if self.error_hash else None,
        )

    def queue(self, status: QueueStatus, *, available_at: int | None = None) -> QueueChange:
        """Return the queue's changeable columns with another status and no error."""
        return QueueChange(
            status=status,
            available_at=self.available_at if available_at is None else available_at,
            consecutive_errors=self.consecutive_errors,
            started_at=self.queue_started_at,
            finished_at=self.queue_finished_at,
        )

    def released(self) -> LeaseClause | None:
        """Return the clause that ends the run's claim, or None when nobody holds it."""
        if self.owner_type is None:
            return None
        return LeaseClause(
            op="released", generation=self.generation, owner_type=cast("OwnerType", self.owner_type)
        )

    def draft(self, event: Event) -> Draft:
        """Return an event of this run's own resource."""
        return Draft("run", self.run_id, event, self.run_id)


class OpenAttempt(NamedTuple):
    """The attempt that has not ended, with its open interval."""

    attempt_id: str
    node_id: str
    visit_number: int
    attempt_number: int
    node_type: str
    status: AttemptStatus
    timeout_ms: int | None
    interval_number: int | None
    observed_at: int | None
    elapsed_ms: int | None
    error_hash: bytes | None

    def closed(self, at_ms: int | None = None, elapsed_ms: int = 0) -> ClosedInterval | None:
        """Return the end of the open interval.

        Args:
            at_ms: Wall time of the end; None closes it at its last stored sample.
            elapsed_ms: Measured active time; never below the last sample.

        Returns:
            The end, or None when no interval is open.
        """
        if self.interval_number is None or self.observed_at is None or self.elapsed_ms is None:
            return None
        return ClosedInterval(
            attempt_id=self.attempt_id,
            interval_number=self.interval_number,
            ended_at=self.observed_at if at_ms is None else at_ms,
            elapsed_ms=max(self.elapsed_ms, elapsed_ms),
        )

    def interrupted(self) -> AttemptChange | None:
        """Return the change of an attempt that lost its runner.

        One that waits for a person stays as it is.
        """
        if self.status == "waiting":
            return None
        return AttemptChange(attempt_id=self.attempt_id, status="interrupted")


class LastStep(NamedTuple):
    """The newest settled attempt of a run."""

    step_index: int
    attempt_id: str
    node_id: str
    visit_number: int
    attempt_number: int
    status: Literal["completed", "failed", "timed_out", "cancelled"]
    output_hash: bytes | None
    error_hash: bytes | None
    finished_at: int


class NodeAttempt(NamedTuple):
    """The newest attempt of one node."""

    attempt_id: str
    node_id: str
    visit_number: int
    attempt_number: int
    node_type: str
    status: AttemptStatus


class PendingRequest(NamedTuple):
    """A question without an answer."""

    request_id: str
    attempt_id: str
    kind: str
    revision: int
    status: str


class AskedRequest(NamedTuple):
    """A question of one attempt and its accepted answer, if there is one."""

    request_id: str
    revision: int
    status: str
    accepted_submission_id: str | None
    settled_at: int | None
    answer_hash: bytes | None


def run_state(read: Read, run_id: str) -> RunState:
    """Return a run's state. Raises NotFound when there is no such run."""
    state = read.one(RunState, SQL["run_state"], run_id=run_id)
    if state is None:
        raise NotFound(f"There is no run {run_id}.", code="runMissing", field="runId")
    return state


def live_run(read: Read, run_id: str) -> RunState:
    """Return the state of a run that has not ended.

    Raises NotFound, or TransitionDenied `runTerminal`.
    """
    state = run_state(read, run_id)
    if state.is_terminal:
        raise TransitionDenied(
            f"Run {run_id} has ended ({state.status}).",
            code="runTerminal",
            hint=f"Start it again with: pi-workflows restart {run_id}",
        )
    return state


def working_run(read: Read, run_id: str) -> RunState:
    """Return the state of a run whose runner is ready: only then do its nodes move.

    Whoever speaks for a runner may come after a pause of the same group, which ended its claim.

    Raises as `live_run`, or TransitionDenied `runNotWorking`.
    """
    state = live_run(read, run_id)
    if state.queue_status != "running":
        raise TransitionDenied(f"No runner works on run {run_id}.", code="runNotWorking")
    return state


def open_attempt(read: Read, run_id: str) -> OpenAttempt | None:
    """Return the attempt of the run that has not ended, or None."""
    return read.one(OpenAttempt, SQL["open_attempt"], run_id=run_id)


def left_attempt(read: Read, run_id: str) -> str | None:
    """Return the attempt that lost its runner and that no other one followed, or None."""
    return read.one(str, SQL["left_attempt"], run_id=run_id)


def last_step(read: Read, run_id: str) -> LastStep | None:
    """Return the newest settled attempt, or None before the first."""
    return read.one(LastStep, SQL["last_step"], run_id=run_id)


def failure_code(read: Read, step: LastStep) -> str | None:
    """Return why a settled attempt did not end well, None when it did."""
    return read.document(Failure.parse, step.error_hash).code if step.error_hash else None


def last_of_node(read: Read, run_id: str, node_id: str) -> NodeAttempt | None:
    """Return the newest attempt of a node, or None before its first."""
    return read.one(NodeAttempt, SQL["last_of_node"], run_id=run_id, node_id=node_id)


def visit_tries(read: Read, run_id: str, node_id: str, visit_number: int) -> int:
    """Return how many attempts of the node's newest visit have settled."""
    tries = read.one(
        int, SQL["visit_tries"], run_id=run_id, node_id=node_id, visit_number=visit_number
    )
    return tries or 0


def unclaimed_status(attempt: OpenAttempt | None) -> Literal["queued", "waiting"]:
    """Return the status of a run that waits for a runner.

    One whose question was answered still waits: its attempt ends only when a runner takes the
    answer. One whose question closed without an answer waits for nobody any more.
    """
    if attempt is None or attempt.status != "waiting" or attempt.error_hash is not None:
        return "queued"
    return "waiting"


def pending_request(read: Read, run_id: str) -> PendingRequest | None:
    """Return the question that the run waits for, or None."""
    return read.one(PendingRequest, SQL["pending_request"], run_id=run_id)


def request_of_attempt(read: Read, attempt_id: str) -> AskedRequest | None:
    """Return the question that an attempt asked, or None."""
    return read.one(AskedRequest, SQL["request_of_attempt"], attempt_id=attempt_id)


def snapshot_of(read: Read, state: RunState) -> Snapshot:
    """Return the run's definition, parsed once per digest."""
    return read.document(Snapshot.parse, state.definition_hash)
