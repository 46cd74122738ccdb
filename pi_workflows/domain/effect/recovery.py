"""What a person says about an effect whose result was lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json, decode
from pi_workflows.base.errors import PayloadInvalid, RevisionConflict, TransitionDenied
from pi_workflows.base.sql import Read
from pi_workflows.domain.effect import state as effects
from pi_workflows.domain.effect.events import EffectRecovered
from pi_workflows.domain.effect.state import EffectState
from pi_workflows.domain.fact import Command, Context, Decided, Draft
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.rows import EffectChange
from pi_workflows.domain.run.events import RunRequeued
from pi_workflows.domain.run.state import RunState, run_state, snapshot_of


@dataclass(frozen=True, slots=True)
class ResolveEffect(Command):
    """Settle an ambiguous effect.

    Attributes:
        effect_id: The effect.
        attempt_number: The try that the person judges.
        action: `confirm`, it happened; `retry`, do it again; `reject`, it did not happen.
        evidence: Why they believe it; of a confirmed effect a JSON object is its result.
    """

    effect_id: str
    attempt_number: int
    action: Literal["confirm", "retry", "reject"]
    evidence: str


def resolve_effect(command: ResolveEffect, context: Context, read: Read) -> Decided:
    """Decide what becomes of an ambiguous effect, and let its run go on.

    Raises:
        NotFound: There is no such run or effect.
        RevisionConflict: `attemptMismatch`, the person judged another try.
        TransitionDenied: The effect is not ambiguous, a retry is asked for a run that has ended, or
            a confirmation lacks the result that the node's model wants (`resultNeeded`).
    """
    state = run_state(read, command.run_id)
    effect = effects.effect_state(read, command.effect_id)
    if effect.status != "ambiguous":
        raise TransitionDenied(
            f"Effect {effect.effect_id} is {effect.status}, not ambiguous.",
            code="effectNotAmbiguous",
        )
    if effect.attempt_count != command.attempt_number:
        raise RevisionConflict("The effect was tried again since.", code="attemptMismatch")
    if command.action == "retry" and state.is_terminal:
        raise TransitionDenied(
            f"Run {state.run_id} has ended; nothing would try again.",
            code="runTerminal",
            hint="Use confirm or reject.",
        )
    if command.action == "confirm":
        _require_result(read, state, effect, command.evidence)
    evidence = Blob.text(command.evidence)
    change, value = _resolved(command, context, effect)
    if command.action == "retry" and not state.paused:
        change = change.model_copy(update={"next_attempt_at": context.at_ms})
    event = EffectRecovered(effect=change, action=command.action, evidence_hash=evidence.hex)
    drafts: list[Draft] = [effect.draft(event)]
    # A paused run goes on when it is resumed, which reads the effect as it stands then.
    if not state.is_terminal and not state.paused:
        requeued = RunRequeued(
            run_id=state.run_id,
            run=state.run(status="queued"),
            queue=state.queue("queued", available_at=context.at_ms).model_copy(
                update={"consecutive_errors": 0}
            ),
            reason=f"effect {command.action}",
        )
        drafts.append(state.draft(requeued))
    return Decided(
        drafts=tuple(drafts),
        blobs=(evidence, value) if value else (evidence,),
        receipt={
            "effectId": effect.effect_id,
            "runId": state.run_id,
            "attemptNumber": command.attempt_number,
            "action": command.action,
            "status": change.status,
        },
    )


def _resolved(
    command: ResolveEffect, context: Context, effect: EffectState
) -> tuple[EffectChange, Blob | None]:
    """Return the effect's new columns, and the result or error that they name."""
    if command.action == "retry":
        return effect.change("pending"), None
    if command.action == "confirm":
        value = _confirmed(command.evidence)
        change = effect.change("applied")
        named = {"result_hash": value.hex, "settled_at": context.at_ms}
    else:
        value = Failure("effectRejected", command.evidence).blob()
        change = effect.change("rejected")
        named = {"error_hash": value.hex, "settled_at": context.at_ms}
    return change.model_copy(update=named), value


def _require_result(read: Read, state: RunState, effect: EffectState, evidence: str) -> None:
    """Refuse a confirmation after which the node could only fail: its model wants a result."""
    path = effects.payload_of(read, effect).node_path
    node = snapshot_of(read, state).nodes[path]
    if node.needs_own_result and _object(evidence) is None:
        raise TransitionDenied(
            f"{path} gives a {node.output_model}; confirming it has to say which.",
            code="resultNeeded",
            field="evidence",
            hint="Give the action's result as a JSON object in --evidence.",
        )


def _confirmed(evidence: str) -> Blob:
    """Return the result of an effect that a person saw happen.

    A JSON object is what the action would have returned; any other text is only evidence.
    """
    value = _object(evidence)
    if value is not None:
        return Blob.json(value)
    return Blob.json({"confirmed": True, "evidence": evidence})


def _object(evidence: str) -> dict[str, Json] | None:
    """Return a JSON object that was given as evidence, or None."""
    try:
        value = decode(evidence.encode())
    except PayloadInvalid:
        return None
    return value if isinstance(value, dict) else None
