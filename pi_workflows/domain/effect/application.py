"""An effect's life under a runner.

Reserved before anything happens, tried under a number, settled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import IdempotencyConflict, Outcome, TransitionDenied
from pi_workflows.base.sql import Read
from pi_workflows.definition.route import APPROVAL_STALE
from pi_workflows.definition.snapshot import EffectPolicy, Node
from pi_workflows.domain.attempt.boundary import required_attempt
from pi_workflows.domain.decision.state import approves
from pi_workflows.domain.effect import state as effects
from pi_workflows.domain.effect.events import (
    EffectApplied,
    EffectAttemptStarted,
    EffectRejected,
    EffectReserved,
)
from pi_workflows.domain.effect.state import SQL, EffectState
from pi_workflows.domain.fact import Command, Context, Decided, Draft, LeaseClause
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.rows import EffectRow, TryStarted
from pi_workflows.domain.run.claim import lost_effect
from pi_workflows.domain.run.events import LeaseReleased
from pi_workflows.domain.run.state import (
    OpenAttempt,
    RunState,
    open_attempt,
    snapshot_of,
    visit_tries,
    working_run,
)
from pi_workflows.domain.value import require_json


@dataclass(frozen=True, slots=True)
class ReserveEffect(Command):
    """Give an action's effect its identity.

    Attributes:
        attempt_id: The open attempt.
        effect_type: The declared type.
        recovery: The declared policy.
        request: What the action is about to do.
    """

    attempt_id: str
    effect_type: str
    recovery: Literal["idempotent", "manual"]
    request: Blob


@dataclass(frozen=True, slots=True)
class BeginEffect(Command):
    """A numbered try begins.

    Attributes:
        effect_id: The reserved effect.
        attempt_number: The try's number: one more than there were.
        owner_id: The runner that tries, as the account names it.
    """

    effect_id: str
    attempt_number: int
    owner_id: str


@dataclass(frozen=True, slots=True)
class SettleEffect(Command):
    """A numbered try ended.

    Attributes:
        effect_id: The effect under way.
        attempt_number: The open try.
        outcome: `applied`, `rejected`, or `uncertain` when it was cut short.
        result: What it gave, if applied; of one that was cut short, what it had given so far.
        failure: Why not, if rejected; why it was cut short.
        leaves: Whether the runner's claim ends with this: a pause was waiting for the effect.
    """

    effect_id: str
    attempt_number: int
    outcome: Literal["applied", "rejected", "uncertain"]
    result: Blob | None = None
    failure: Failure | None = None
    leaves: bool = False


def reserve_effect(command: ReserveEffect, context: Context, read: Read) -> Decided:
    """Decide on the identity of an effect: a new one, or the one that this visit already has.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It has ended, the attempt is not the open one, or its node declares
            another effect; `approvalStale`, a person approved another request, or none.
        IdempotencyConflict: `effectConflict`, the visit reserved another request before.
    """
    state = working_run(read, command.run_id)
    attempt = required_attempt(read, command.run_id, command.attempt_id)
    node = snapshot_of(read, state).nodes[attempt.node_id]
    _require_declared(node, attempt, command)
    require_json("request", command.request)
    _require_approval(read, node, attempt, command)
    key, effect_id = effects.identity(
        state.run_id,
        state.resource_id,
        command.effect_type,
        attempt.node_id,
        attempt.visit_number,
    )
    payload = Blob.json(
        {
            "nodePath": attempt.node_id,
            "visit": attempt.visit_number,
            "recovery": command.recovery,
            "request": command.request.hex,
        }
    )
    known = read.one(EffectState, SQL["effect_state"], effect_id=effect_id)
    if known is not None:
        return _known_effect(known, payload)
    row = EffectRow(
        effect_id=effect_id,
        resource_id=ids.resource_id("effect", effect_id),
        source_resource_id=state.resource_id,
        source_revision=state.revision,
        effect_type=command.effect_type,
        idempotency_key=key,
        payload_hash=payload.hex,
        owner_scope="run",
        status="pending",
        attempt_count=0,
        next_attempt_at=context.at_ms,
        result_hash=None,
        external_ref=None,
        error_hash=None,
        created_at=context.at_ms,
        updated_at=context.at_ms,
        settled_at=None,
    )
    event = EffectReserved(effect=row, request_hash=command.request.hex)
    return Decided(
        drafts=(Draft("effect", effect_id, event, state.run_id),),
        blobs=(payload, command.request),
        values={"effectId": effect_id, "status": "pending", "attemptCount": 0},
    )


def _require_declared(node: Node, attempt: OpenAttempt, command: ReserveEffect) -> None:
    """Refuse an effect that the node does not declare."""
    if node.effect != EffectPolicy(type=command.effect_type, recovery=command.recovery):
        raise TransitionDenied(
            f"{attempt.node_id} does not declare this effect.", code="effectUndeclared"
        )


def _require_approval(read: Read, node: Node, attempt: OpenAttempt, command: ReserveEffect) -> None:
    """Refuse an action that nobody approved as it is now, before anything of it happens.

    The node then fails, and the route leads back to the decision. Raises TransitionDenied
    `approvalStale`.
    """
    asked = node.approved_by
    if asked is None or approves(read, command.run_id, asked, command.request.digest):
        return
    raise TransitionDenied(
        f"{attempt.node_id} asks for something else than {asked} approved.", code=APPROVAL_STALE
    )


def _known_effect(known: EffectState, payload: Blob) -> Decided:
    """Return what the visit's effect came to so far; the same request adopts it."""
    if known.payload_hash != payload.digest:
        raise IdempotencyConflict(
            "The action asks for something else than it did before under the same effect.",
            code="effectConflict",
            hint="Derive the request only from the input and from earlier outputs.",
        )
    values: dict[str, Json] = {
        "effectId": known.effect_id,
        "status": known.status,
        "attemptCount": known.attempt_count,
    }
    if known.result_hash is not None:
        values["result"] = known.result_hash.hex()
    return Decided(values=values, outcome=Outcome.ADOPTED)


def begin_effect(command: BeginEffect, context: Context, read: Read) -> Decided:
    """Decide that a numbered try begins.

    Raises:
        NotFound: There is no such run or effect.
        TransitionDenied: The run has ended, or the effect may not be tried now under this number.
    """
    state = working_run(read, command.run_id)
    effect = effects.effect_state(read, command.effect_id)
    attempt = open_attempt(read, state.run_id)
    if attempt is None or not _is_of(read, effect, state, attempt):
        raise TransitionDenied("The effect is not the open attempt's.", code="attemptMismatch")
    if effect.status != "pending" and not _is_retry(read, state, attempt, effect):
        raise TransitionDenied(f"The effect is {effect.status}.", code="effectNotPending")
    if command.attempt_number != effect.attempt_count + 1:
        raise TransitionDenied("The try has another number.", code="attemptMismatch")
    generation = effect.generation + 1
    event = EffectAttemptStarted(
        lease=LeaseClause(op="claimed", generation=generation, owner_type="host"),
        effect=effect.change("applying", attempt_count=command.attempt_number),
        attempt=TryStarted(
            effect_id=effect.effect_id,
            attempt_number=command.attempt_number,
            owner_id=command.owner_id,
            lease_generation=generation,
            started_at=context.at_ms,
        ),
    )
    return Decided(drafts=(effect.draft(event),))


def _is_of(read: Read, effect: EffectState, state: RunState, attempt: OpenAttempt) -> bool:
    """Whether an effect is the one of the visit whose attempt is open, and was not paused since."""
    if effect.run_id != state.run_id or state.paused:
        return False
    payload = effects.payload_of(read, effect)
    return (payload.node_path, payload.visit) == (attempt.node_id, attempt.visit_number)


def _is_retry(read: Read, state: RunState, attempt: OpenAttempt, effect: EffectState) -> bool:
    """Whether a declared retry reopens a rejected idempotent effect.

    Engine contract, section 6.
    """
    if effect.status != "rejected" or effects.is_manual(read, effect):
        return False
    return visit_tries(read, state.run_id, attempt.node_id, attempt.visit_number) > 0


def settle_effect(command: SettleEffect, context: Context, read: Read) -> Decided:
    """Decide what a try came to.

    Raises:
        NotFound: There is no such run or effect.
        TransitionDenied: The run has ended, or this is not the open try.
    """
    state = working_run(read, command.run_id)
    effect = effects.effect_state(read, command.effect_id)
    is_open = effect.status == "applying" and effect.attempt_count == command.attempt_number
    if effect.run_id != state.run_id or not is_open:
        raise TransitionDenied("The try is not the open one.", code="attemptMismatch")
    if command.outcome == "uncertain" and effects.is_manual(read, effect):
        require_json("result", command.result)
        error = command.failure.blob() if command.failure else None
        cut = effects.CutShort(_hex(command.result), _hex(error))
        lost = lost_effect(context, state, open_attempt(read, state.run_id), effect, cut)
        return replace(lost, blobs=(*lost.blobs, *_present(command.result, error)))
    _require_account(command)
    error = command.failure.blob() if command.failure else None
    drafts = [_settled(command, context, effect, error)]
    # A pause that was decided after the runner's message left makes this the end of its claim too.
    if command.leaves or state.paused:
        drafts.append(_left(read, state))
    return Decided(drafts=tuple(drafts), blobs=_present(command.result, error))


def _present(*blobs: Blob | None) -> tuple[Blob, ...]:
    """Return the values that there are."""
    return tuple(blob for blob in blobs if blob is not None)


def _hex(blob: Blob | None) -> str | None:
    """Return the digest of a value, if there is one."""
    return None if blob is None else blob.hex


def _require_account(command: SettleEffect) -> None:
    """Refuse a try whose end and account contradict one another."""
    require_json("result", command.result)
    if command.outcome == "uncertain":
        return
    if (command.outcome == "applied") != (command.result is not None):
        raise TransitionDenied(
            "A try has a result exactly when it was applied.", code="resultMismatch"
        )
    if (command.outcome == "rejected") != (command.failure is not None):
        raise TransitionDenied(
            "A try has an error exactly when it was rejected.", code="errorMismatch"
        )


def _settled(
    command: SettleEffect, context: Context, effect: EffectState, error: Blob | None
) -> Draft:
    """Return the event that ends the open try."""
    if command.outcome == "uncertain":
        cut = effects.CutShort(_hex(command.result), _hex(error))
        return effects.interrupted(effect, context.at_ms, cut=cut)
    result_hash, error_hash = _hex(command.result), _hex(error)
    change = effect.change(command.outcome).model_copy(
        update={
            "result_hash": result_hash,
            "error_hash": error_hash,
            "settled_at": context.at_ms,
        }
    )
    kind = EffectApplied if command.outcome == "applied" else EffectRejected
    finished = effect.finished(
        command.outcome, context.at_ms, result_hash=result_hash, error_hash=error_hash
    )
    return effect.draft(kind(lease=effect.released(), effect=change, attempt=finished))


def _left(read: Read, state: RunState) -> Draft:
    """Return the end of a claim that a pause had left with its runner until the effect settled."""
    attempt = open_attempt(read, state.run_id)
    is_paused = state.paused == 1
    event = LeaseReleased(
        lease=state.released(),
        run_id=state.run_id,
        run=None if is_paused else state.run(status="queued"),
        queue=state.queue("parked" if is_paused else "queued"),
        attempt=attempt.interrupted() if attempt else None,
        interval=attempt.closed() if attempt else None,
        reason="paused",
    )
    return state.draft(event)
