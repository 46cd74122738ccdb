"""What a sound runner, scheduler and person would do next with a run as it stands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json, decode
from pi_workflows.base.errors import NotFound
from pi_workflows.definition.composition import exhausted
from pi_workflows.definition.decision import DecisionPolicy
from pi_workflows.definition.effects import effect_key
from pi_workflows.definition.route import APPROVAL_STALE, End, route
from pi_workflows.definition.snapshot import AssistantOutput, EffectPolicy, Node
from pi_workflows.definition.snapshot import Snapshot as Definition
from pi_workflows.domain.attempt.boundary import FinishAttempt, Requeue, StartAttempt, due_node
from pi_workflows.domain.attempt.invocations import first_step
from pi_workflows.domain.attempt.notice import Notify
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.attempt.question import WaitForInput
from pi_workflows.domain.decision.resolution import AnswerDecision, CloseDecision
from pi_workflows.domain.decision.state import approves, decision_of
from pi_workflows.domain.effect.application import BeginEffect, ReserveEffect, SettleEffect
from pi_workflows.domain.effect.recovery import ResolveEffect
from pi_workflows.domain.effect.state import EffectState, ambiguous_effect, effect_state
from pi_workflows.domain.fact import Command
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.request.closing import closed_outcome
from pi_workflows.domain.run.claim import ClaimRun, MarkReady
from pi_workflows.domain.run.control import ResumeRun
from pi_workflows.domain.run.ending import FinishRun
from pi_workflows.domain.run.state import (
    NODE_OUTCOME,
    OpenAttempt,
    PendingRequest,
    RunState,
    last_step,
    open_attempt,
    pending_request,
    request_of_attempt,
    run_state,
    snapshot_of,
    visit_tries,
)
from pi_workflows.store.snapshot import Snapshot
from tests.kernel.session_moves import session_move

T = TypeVar("T")
Choose: TypeAlias = Callable[[Sequence[T]], T]

OUTPUTS: Sequence[Json] = ({"route": "a"}, {"route": "b"}, {"route": "c"}, {"n": 1}, "text", 5)
_FAILED = Failure("nodeFailed", "it did not work")


def runner_move(read: Snapshot, run_id: str, now_ms: int, choose: Choose[int]) -> Command | None:
    """Return what a scheduler or runner does next, or None when that is nobody's turn.

    Args:
        read: The database.
        run_id: The run.
        now_ms: Wall time.
        choose: Picks one of the numbers that it is given; where several moves are sound.
    """
    state = run_state(read, run_id)
    if state.queue_status == "queued" and state.available_at <= now_ms:
        return ClaimRun(run_id)
    if state.queue_status == "starting":
        return MarkReady(run_id)
    if state.queue_status != "running":
        return None
    attempt = open_attempt(read, run_id)
    if attempt is None:
        return _between(read, state)
    if attempt.error_hash is not None:
        why = Failure.parse(read.blob(attempt.error_hash))
        outcome = closed_outcome(why.code)
        return FinishAttempt(run_id, attempt.attempt_id, outcome, failure=why)
    if attempt.status == "waiting":
        request = request_of_attempt(read, attempt.attempt_id)
        assert request is not None
        assert request.answer_hash is not None
        answer = Blob.of(read.blob(request.answer_hash), "application/json")
        return FinishAttempt(run_id, attempt.attempt_id, "ok", output=answer)
    return _at_work(read, state, attempt, choose)


def _at_work(read: Snapshot, state: RunState, attempt: OpenAttempt, choose: Choose[int]) -> Command:
    """Return what a runner does with a node that has begun."""
    run_id, node = state.run_id, snapshot_of(read, state).nodes[attempt.node_id]
    if attempt.node_type == "checkpoint":
        declared = node.human_decision
        if declared is not None:
            return WaitForInput(run_id, attempt.attempt_id, "decision", _decision(declared, choose))
        question = Blob.json({"summary": "Go on?"})
        return WaitForInput(run_id, attempt.attempt_id, "checkpoint", question)
    if attempt.node_type == "agent":
        return _to_model(run_id, attempt.attempt_id, node)
    if node.notify_kind is not None:
        return Notify(run_id, attempt.attempt_id, Blob.json("It goes on."), node.notify_kind)
    if choose(range(6)) == 0:
        data = Blob.json({"label": str(choose(range(3)))})
        key = str(choose(range(3)))
        return RecordUpdate(run_id, attempt.attempt_id, "progress", key, data)
    if attempt.node_type == "action":
        return _acting(read, state, attempt, choose)
    return _ended(run_id, attempt.attempt_id, choose)


def _decision(declared: DecisionPolicy, choose: Choose[int]) -> Blob:
    """Return a question to a person; what it shows is mostly what is done afterwards."""
    policy: Json = declared.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert isinstance(policy, dict)
    subject: Json = ("do it", "do it", "something else")[choose(range(3))]
    member: Json = {
        **policy,
        "title": "Go on?",
        "subject": subject,
        "presentation": {"summary": "It is done."},
    }
    return Blob.json({"summary": "Go on?", "decision": member})


def _to_model(run_id: str, attempt_id: str, node: Node) -> WaitForInput:
    """Return a question to a model."""
    kind = node.request_kind
    assert kind is not None
    contract: dict[str, Json] = {"kind": kind, "prompt": "Plan it."}
    if isinstance(node.expected_output, AssistantOutput):
        contract["maxChars"] = node.expected_output.max_chars
    return WaitForInput(run_id, attempt_id, kind, Blob.json(contract))


def _between(read: Snapshot, state: RunState) -> Command:
    """Return the next node's start, a delay, or the run's end."""
    snapshot = snapshot_of(read, state)
    step = last_step(read, state.run_id)
    due = due_node(read, state, snapshot, step)
    steps = step.step_index + 1 if step is not None else 0
    if due is not None and due.delay_ms and state.available_at < _due_ms(read, state, due.delay_ms):
        return Requeue(state.run_id, due.delay_ms)
    if due is not None and not _is_spent(read, state, snapshot, due.node_path, steps):
        node = snapshot.nodes[due.node_path]
        return StartAttempt(
            state.run_id,
            ids.attempt_id(state.run_id, due.node_path, due.attempt_number),
            due.node_path,
            due.visit,
            due.attempt_number,
            node.type,
            7_000 if node.timeout_ms is None else node.timeout_ms,
        )
    if due is not None or step is None:
        return FinishRun(state.run_id, "failed", failure=Failure("maxSteps", "too many steps"))
    value = step.output_hash
    chosen = route(
        snapshot,
        step.node_id,
        NODE_OUTCOME[step.status],
        lambda: read.document(decode, value) if value is not None else None,
    )
    if isinstance(chosen, End) and chosen.outcome == "completed":
        assert value is not None
        output = Blob.of(read.blob(value), "application/json")
        return FinishRun(state.run_id, "completed", output=output)
    if isinstance(chosen, End) and chosen.outcome == "timed_out":
        return FinishRun(state.run_id, "timed_out", failure=_FAILED)
    return FinishRun(state.run_id, "failed", failure=_FAILED)


def _is_spent(
    read: Snapshot, state: RunState, definition: Definition, node_path: str, steps: int
) -> bool:
    """Whether a workflow around a node has taken all its steps."""

    def taken(mount: str) -> int:
        return steps - first_step(read, state.run_id, definition, mount)

    return exhausted(definition, node_path, steps, taken) is not None


def _due_ms(read: Snapshot, state: RunState, delay_ms: int) -> int:
    """Return when what is due later may start, if its run was not requeued for it before."""
    step = last_step(read, state.run_id)
    assert step is not None
    return step.finished_at + delay_ms


def _acting(read: Snapshot, state: RunState, attempt: OpenAttempt, choose: Choose[int]) -> Command:
    """Return the next step of an action: its effect's, then its own."""
    node = snapshot_of(read, state).nodes[attempt.node_id]
    declared = node.effect
    assert declared is not None
    effect = effect_of(read, state, attempt, declared)
    key = attempt.attempt_id
    asked, wanted = node.approved_by, Blob.json("do it").digest
    if asked is not None and not approves(read, state.run_id, asked, wanted):
        stale = Failure(APPROVAL_STALE, "another request was approved")
        return FinishAttempt(state.run_id, key, "failed", failure=stale)
    if effect is None:
        return ReserveEffect(
            state.run_id, key, declared.type, declared.recovery, Blob.json("do it")
        )
    number = effect.attempt_count
    is_retry = visit_tries(read, state.run_id, attempt.node_id, attempt.visit_number) > 0
    is_reopened = effect.status == "rejected" and declared.recovery == "idempotent" and is_retry
    if effect.status == "applying":
        outcomes = ("applied", "rejected", "uncertain", "applied")
        outcome = outcomes[choose(range(4))]
        return SettleEffect(
            state.run_id,
            effect.effect_id,
            number,
            outcome,  # type: ignore[arg-type] # one of the three outcomes
            result=Blob.json({"id": number}) if outcome != "rejected" else None,
            failure=Failure("refused", "no") if outcome != "applied" else None,
        )
    if effect.status == "applied":
        return _ended(state.run_id, key, choose)
    if is_reopened or (effect.status == "pending" and choose(range(4))):
        return BeginEffect(state.run_id, effect.effect_id, number + 1, "worker")
    outcome = ("failed", "timed_out")[choose(range(2))]
    return FinishAttempt(state.run_id, key, outcome, failure=_FAILED)  # type: ignore[arg-type] # as above


def effect_of(
    read: Snapshot, state: RunState, attempt: OpenAttempt, declared: EffectPolicy
) -> EffectState | None:
    """Return the effect of an action's visit, or None before it is reserved."""
    key = effect_key(state.run_id, declared.type, attempt.node_id, attempt.visit_number)
    try:
        return effect_state(read, ids.effect_id(state.resource_id, declared.type, key))
    except NotFound:
        return None


def _ended(run_id: str, attempt_id: str, choose: Choose[int]) -> FinishAttempt:
    """Return an attempt's end."""
    outcome = ("ok", "ok", "ok", "failed", "timed_out")[choose(range(5))]
    return FinishAttempt(
        run_id,
        attempt_id,
        outcome,  # type: ignore[arg-type] # as above
        output=Blob.json(OUTPUTS[choose(range(len(OUTPUTS)))]) if outcome == "ok" else None,
        failure=None if outcome == "ok" else _FAILED,
        elapsed_ns=choose(range(3)) * 1_500_000,
    )


def persons_move(
    read: Snapshot, run_id: str, key: str, choose: Choose[int], now_ms: int
) -> Command | None:
    """Return what a person or a session does so that a run that stands still goes on, or None.

    Args:
        read: The database.
        run_id: The run.
        key: Names an answer.
        choose: As in `runner_move`.
        now_ms: Wall time.
    """
    state = run_state(read, run_id)
    if state.is_terminal:
        return session_move(read, run_id, key, choose)
    if state.is_claimed or state.queue_status == "queued":
        return None
    ambiguous = ambiguous_effect(read, state.resource_id)
    if ambiguous is not None:
        number = effect_state(read, ambiguous).attempt_count
        verdict = ("confirm", "retry", "reject")[choose(range(3))]
        return ResolveEffect(run_id, ambiguous, number, verdict, "seen")  # type: ignore[arg-type] # as above
    request = pending_request(read, run_id)
    if state.paused or request is None:
        return ResumeRun(run_id)
    if request.kind in ("agent", "assistant"):
        return session_move(read, run_id, key, choose)
    if request.kind == "decision":
        return _decided(read, run_id, request, key=key, choose=choose, now_ms=now_ms)
    value = Blob.json(OUTPUTS[choose(range(len(OUTPUTS)))])
    return AnswerCheckpoint(run_id, request.request_id, request.revision, key, key, value)


def _decided(
    read: Snapshot,
    run_id: str,
    request: PendingRequest,
    *,
    key: str,
    choose: Choose[int],
    now_ms: int,
) -> Command:
    """Return a person's decision, or what its deadline says."""
    decision = decision_of(read, run_id, request.attempt_id)
    if decision.is_due(now_ms):
        return CloseDecision(run_id, decision.decision_id)
    response = Blob.json({"choice": ("a", "b")[choose(range(2))]})
    return AnswerDecision(run_id, request.request_id, request.revision, key, key, response)
