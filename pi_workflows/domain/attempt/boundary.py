"""Node boundaries: a runner settles one attempt and starts the next, or leaves the run to wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import decode
from pi_workflows.base.errors import TransitionDenied
from pi_workflows.base.sql import Read
from pi_workflows.base.units import NS_PER_MS
from pi_workflows.definition.retry import retry_delay_ms
from pi_workflows.definition.route import Next, route
from pi_workflows.definition.snapshot import Node, Snapshot
from pi_workflows.domain.attempt.events import AttemptSettled, AttemptStarted
from pi_workflows.domain.attempt.invocations import require_steps
from pi_workflows.domain.decision.state import is_resolved_as
from pi_workflows.domain.effect import state as effects
from pi_workflows.domain.fact import Command, Context, Decided, Draft
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.taken import taken_answer
from pi_workflows.domain.rows import (
    AttemptChange,
    AttemptRow,
    AttemptStatus,
    ClosedInterval,
    IntervalRow,
)
from pi_workflows.domain.run.events import RunRequeued
from pi_workflows.domain.run.state import (
    NODE_OUTCOME,
    LastStep,
    OpenAttempt,
    RunState,
    failure_code,
    last_of_node,
    last_step,
    open_attempt,
    snapshot_of,
    visit_tries,
    working_run,
)
from pi_workflows.domain.settings.events import AttemptStatusChanged
from pi_workflows.domain.settings.state import Binding, bound_scope, stale_scope
from pi_workflows.domain.value import require_json

_STATUS: Final[dict[str, AttemptStatus]] = {
    "ok": "completed",
    "failed": "failed",
    "timed_out": "timed_out",
    "cancelled": "cancelled",
}


@dataclass(frozen=True, slots=True)
class StartAttempt(Command):
    """A node begins.

    Attributes:
        attempt_id: The derived identity of run, node and number.
        node_path: Full compiled path.
        visit: Which entry of the path in this run, from 1.
        attempt_number: Which execution of the path in this run, from 1.
        node_type: The node's type.
        timeout_ms: Active-time budget; 0 is unlimited.
        prompt: What an agent is told, as text.
        settings: The settings that its runner knows, if the node has any.
    """

    attempt_id: str
    node_path: str
    visit: int
    attempt_number: int
    node_type: str
    timeout_ms: int
    prompt: Blob | None = None
    settings: Binding | None = None


@dataclass(frozen=True, slots=True)
class FinishAttempt(Command):
    """The open attempt ended.

    Attributes:
        attempt_id: The open attempt.
        outcome: How it ended.
        output: Its value; an `ok` attempt has one.
        receipt: A small account of what it did.
        failure: What went wrong, unless it is `ok`.
        elapsed_ns: Active time since the attempt started, in nanoseconds.
    """

    attempt_id: str
    outcome: Literal["ok", "failed", "timed_out", "cancelled"]
    output: Blob | None = None
    receipt: Blob | None = None
    failure: Failure | None = None
    elapsed_ns: int = 0


@dataclass(frozen=True, slots=True)
class Requeue(Command):
    """A retry or the next node is due later; the runner leaves.

    Attributes:
        delay_ms: Milliseconds until something is due.
    """

    delay_ms: int


@dataclass(frozen=True, slots=True)
class Due:
    """The node that the accepted history leads to.

    Attributes:
        node_path: The node.
        visit: Its visit.
        attempt_number: The number of its next attempt.
        delay_ms: How long it has to wait from the settlement before it: a retry, or the next node
            after an edge that waits.
        is_retry: Whether it is a retry of the visit that settled.
    """

    node_path: str
    visit: int
    attempt_number: int
    delay_ms: int = 0
    is_retry: bool = False


def due_node(read: Read, state: RunState, snapshot: Snapshot, step: LastStep | None) -> Due | None:
    """Return the node that the run's history leads to, or None when it leads to the run's end.

    Args:
        read: Reads of the deciding transaction.
        state: The run; it has no open attempt.
        snapshot: Its definition.
        step: Its newest settled attempt.

    Returns:
        A retry of the last visit, the visit that a lost runner left, or a new visit of the next
        node.
    """
    delay_ms = 0
    is_retry = False
    if step is None:
        node_path = snapshot.start_at
    else:
        outcome = NODE_OUTCOME[step.status]
        tries = visit_tries(read, state.run_id, step.node_id, step.visit_number)
        code = failure_code(read, step)
        delay = retry_delay_ms(snapshot.nodes[step.node_id], outcome, tries, code)
        if delay is not None:
            node_path, delay_ms, is_retry = step.node_id, delay, True
        else:
            output = step.output_hash
            chosen = route(
                snapshot,
                step.node_id,
                outcome,
                lambda: read.document(decode, output) if output else None,
                code,
            )
            if not isinstance(chosen, Next):
                return None
            node_path, delay_ms = chosen.node_path, chosen.delay_ms
    newest = last_of_node(read, state.run_id, node_path)
    if newest is None:
        return Due(node_path, 1, 1, delay_ms)
    goes_on = is_retry or newest.status == "interrupted"
    if not goes_on:
        return Due(node_path, newest.visit_number + 1, newest.attempt_number + 1, delay_ms)
    # What a lost runner had begun has waited already.
    waits_ms = delay_ms if is_retry else 0
    return Due(node_path, newest.visit_number, newest.attempt_number + 1, waits_ms, is_retry)


def start_attempt(command: StartAttempt, context: Context, read: Read) -> Decided:
    """Decide that a node begins, if the accepted history leads to it.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It has ended, an attempt is open, or another node, visit or number is due.
        LimitExceeded: `maxSteps`, the run or an included workflow has taken all its steps.
    """
    state = working_run(read, command.run_id)
    if open_attempt(read, command.run_id) is not None:
        raise TransitionDenied("An attempt is already open.", code="attemptOpen")
    snapshot = snapshot_of(read, state)
    step = last_step(read, command.run_id)
    due = due_node(read, state, snapshot, step)
    asked = (command.node_path, command.visit, command.attempt_number)
    if due is None or asked != (due.node_path, due.visit, due.attempt_number):
        raise TransitionDenied(f"{command.node_path} is not the next node.", code="routeMismatch")
    node = snapshot.nodes[due.node_path]
    if command.node_type != node.type:
        raise TransitionDenied(f"{due.node_path} is a {node.type} node.", code="nodeMismatch")
    if command.prompt is not None and node.type != "agent":
        raise TransitionDenied(f"{due.node_path} has no prompt.", code="nodeMismatch")
    if node.timeout_ms is not None and command.timeout_ms != node.timeout_ms:
        raise TransitionDenied(f"{due.node_path} has another timeout.", code="nodeMismatch")
    key = ids.attempt_id(command.run_id, due.node_path, due.attempt_number)
    if command.attempt_id != key:
        raise TransitionDenied("The attempt ID is not the derived one.", code="attemptMismatch")
    taken = step.step_index + 1 if step is not None else 0
    require_steps(read, state.run_id, snapshot, due.node_path, taken)
    scope = bound_scope(read, state.run_id, snapshot, due.node_path, command.settings)
    bound = scope.binding if scope is not None else None
    is_news = scope is not None and bound != command.settings
    return Decided(
        drafts=(state.draft(_started(command, bound, context.at_ms)),),
        blobs=() if command.prompt is None else (command.prompt,),
        values=scope.document() if scope is not None and is_news else None,
    )


def _started(command: StartAttempt, bound: Binding | None, at_ms: int) -> AttemptStarted:
    """Return the fact that a node began, bound to the settings of this moment."""
    return AttemptStarted(
        attempt=AttemptRow(
            attempt_id=command.attempt_id,
            run_id=command.run_id,
            node_id=command.node_path,
            visit_number=command.visit,
            attempt_number=command.attempt_number,
            node_type=command.node_type,
            status="running",
            prompt_hash=command.prompt.hex if command.prompt else None,
            output_hash=None,
            receipt_hash=None,
            error_hash=None,
            settings_scope_id=bound.scope_id if bound else None,
            settings_change_number=bound.change_number if bound else None,
            settings_hash=bound.value_hash if bound else None,
            started_at=at_ms,
            timeout_ms=command.timeout_ms,
            finished_at=None,
            created_at=at_ms,
            updated_at=at_ms,
        ),
        interval=IntervalRow(
            attempt_id=command.attempt_id,
            interval_number=1,
            started_at=at_ms,
            observed_at=at_ms,
            ended_at=None,
            elapsed_ms=0,
        ),
    )


def finish_attempt(command: FinishAttempt, context: Context, read: Read) -> Decided:
    """Decide that the open attempt ended, and give it its place in the order of steps.

    A settings route whose settings changed meanwhile is no step: it is attempted again, and its
    runner is told the settings of now.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It has ended, the attempt is not the open one, its effect is not settled,
            an `ok` attempt has no output, or its output is not the accepted answer.
        PayloadInvalid: `notJson`, its output or receipt comes as text.
    """
    state = working_run(read, command.run_id)
    attempt = required_attempt(read, command.run_id, command.attempt_id)
    require_json("output", command.output)
    require_json("receipt", command.receipt)
    if (stale := _outdated(read, state, attempt, command, context.at_ms)) is not None:
        return stale
    request = taken_answer(
        read,
        attempt,
        outcome=command.outcome,
        output=command.output,
        failure=command.failure,
        at_ms=context.at_ms,
    )
    _require_resolved(read, state, attempt, command)
    if attempt.node_type == "notify" and command.outcome == "ok":
        raise TransitionDenied("Only its text completes a notification.", code="textMissing")
    if command.outcome == "ok" and command.output is None:
        raise TransitionDenied("An attempt that succeeded has an output.", code="outputMissing")
    if command.outcome != "ok" and command.failure is None:
        raise TransitionDenied("An attempt that failed has an error.", code="errorMissing")
    if command.outcome == "ok" and command.failure is not None:
        raise TransitionDenied("An attempt that succeeded has no error.", code="errorUnexpected")
    step = last_step(read, command.run_id)
    error = command.failure.blob() if command.failure else None
    event = AttemptSettled(
        run_id=command.run_id,
        node_id=attempt.node_id,
        step_index=step.step_index + 1 if step else 0,
        attempt=AttemptChange(
            attempt_id=attempt.attempt_id,
            status=_STATUS[command.outcome],
            output_hash=command.output.hex if command.output else None,
            receipt_hash=command.receipt.hex if command.receipt else None,
            error_hash=error.hex if error else None,
            finished_at=context.at_ms,
        ),
        interval=measured(attempt, context.at_ms, command.elapsed_ns),
        request=request,
    )
    drafts = (state.draft(event), *_left_effects(read, state, attempt, command, context.at_ms))
    blobs = tuple(b for b in (command.output, command.receipt, error) if b is not None)
    return Decided(drafts=drafts, blobs=blobs)


def _outdated(
    read: Read, state: RunState, attempt: OpenAttempt, command: FinishAttempt, at_ms: int
) -> Decided | None:
    """Return that a settings route chose by a value of before; None when its choice counts."""
    snapshot = snapshot_of(read, state)
    policy = snapshot.settings_of(attempt.node_id)
    if policy is None or not snapshot.nodes[attempt.node_id].settings_route:
        return None
    scope = stale_scope(read, state.run_id, policy.mount, attempt.attempt_id)
    if scope is None:
        return None
    event = AttemptStatusChanged(
        run_id=state.run_id,
        node_id=attempt.node_id,
        attempt=attempt.interrupted(),
        interval=measured(attempt, at_ms, command.elapsed_ns),
    )
    return Decided(drafts=(state.draft(event),), values=scope.document())


def required_attempt(read: Read, run_id: str, attempt_id: str) -> OpenAttempt:
    """Return the open attempt when it is this one. Raises TransitionDenied `attemptMismatch`."""
    attempt = open_attempt(read, run_id)
    if attempt is None or attempt.attempt_id != attempt_id:
        raise TransitionDenied("The attempt is not the open one.", code="attemptMismatch")
    return attempt


def measured(attempt: OpenAttempt, at_ms: int, elapsed_ns: int) -> ClosedInterval | None:
    """Return the end of the open interval with its measured time, rounded once to milliseconds."""
    return attempt.closed(at_ms, round(elapsed_ns / NS_PER_MS))


def _require_resolved(
    read: Read, state: RunState, attempt: OpenAttempt, command: FinishAttempt
) -> None:
    """Refuse the output of a decision that is not how the decision was resolved.

    Raises TransitionDenied `outputMismatch`.
    """
    if command.outcome != "ok" or command.output is None or attempt.node_type != "checkpoint":
        return
    if snapshot_of(read, state).nodes[attempt.node_id].request_kind != "decision":
        return
    if not is_resolved_as(read, state.run_id, attempt.attempt_id, command.output.digest):
        raise TransitionDenied("The output is not the decision.", code="outputMismatch")


def _left_effects(
    read: Read, state: RunState, attempt: OpenAttempt, command: FinishAttempt, at_ms: int
) -> list[Draft]:
    """Return the end of an action's effect that nobody will apply any more.

    Decision on uncertainty.
    """
    if attempt.node_type != "action":
        return []
    left = effects.unsettled(read, state.resource_id)
    if any(effect.status == "applying" for effect in left):
        raise TransitionDenied("The attempt's effect is under way.", code="effectApplying")
    node = snapshot_of(read, state).nodes[attempt.node_id]
    if command.outcome == "ok" and not _is_applied(read, state, attempt, node):
        raise TransitionDenied("An action that succeeded has its effect.", code="effectNotApplied")
    tries = visit_tries(read, state.run_id, attempt.node_id, attempt.visit_number) + 1
    code = command.failure.code if command.failure else None
    if retry_delay_ms(node, command.outcome, tries, code) is not None:
        return []
    return [effects.cancelled(effect, at_ms) for effect in left]


def _is_applied(read: Read, state: RunState, attempt: OpenAttempt, node: Node) -> bool:
    """Whether the effect of an action's visit was applied."""
    assert node.effect is not None, "an action without an effect"
    _, effect_id = effects.identity(
        state.run_id,
        state.resource_id,
        node.effect.type,
        attempt.node_id,
        attempt.visit_number,
    )
    return effects.is_applied(read, effect_id)


def requeue(command: Requeue, context: Context, read: Read) -> Decided:
    """Decide that the run leaves its runner until a retry, or the next node, is due.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It has ended, an attempt is open, or nothing with this delay is due.
    """
    state = working_run(read, command.run_id)
    if open_attempt(read, command.run_id) is not None:
        raise TransitionDenied("An attempt is still open.", code="attemptOpen")
    step = last_step(read, command.run_id)
    due = due_node(read, state, snapshot_of(read, state), step)
    if due is None or due.delay_ms == 0 or due.delay_ms != command.delay_ms:
        raise TransitionDenied("Nothing with this delay is due.", code="retryNotDue")
    event = RunRequeued(
        lease=state.released(),
        run_id=state.run_id,
        run=state.run(status="queued"),
        queue=state.queue("queued", available_at=context.at_ms + command.delay_ms).model_copy(
            update={"consecutive_errors": 0}
        ),
        reason="retry" if due.is_retry else "delay",
    )
    due_ms = context.at_ms + command.delay_ms
    return Decided(drafts=(state.draft(event), *effects.scheduled(read, state.resource_id, due_ms)))
