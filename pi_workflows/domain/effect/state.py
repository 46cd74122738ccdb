"""What a decision about an effect depends on, and the drafts that several decisions share."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, cast

from pydantic import Field

from pi_workflows.base import ids
from pi_workflows.base.errors import NotFound
from pi_workflows.base.sql import Read, load
from pi_workflows.definition.effects import effect_key
from pi_workflows.domain.effect.events import (
    EffectAmbiguous,
    EffectAttemptFinished,
    EffectCancelled,
    EffectRetryScheduled,
)
from pi_workflows.domain.fact import Draft, Event, Fact, Integer, LeaseClause, OwnerType
from pi_workflows.domain.rows import EffectChange, EffectStatus, TryFinished

SQL: Final = load(__package__, "reads.sql")
SETTLE_QUEUE: Final = "run.settle_queue"


class EffectPayload(Fact):
    """What an action's effect is about.

    The stored payload, whose digest together with the key is its identity.
    """

    node_path: str = Field(alias="nodePath")
    visit: Integer
    recovery: Literal["idempotent", "manual"]
    request: str

    @classmethod
    def parse(cls, content: bytes) -> EffectPayload:
        """Read a stored payload."""
        return cls.model_validate_json(content)


class EffectState(NamedTuple):
    """One effect of a run, with its claim and its run."""

    effect_id: str
    effect_type: str
    status: EffectStatus
    attempt_count: int
    payload_hash: bytes
    result_hash: bytes | None
    error_hash: bytes | None
    generation: int
    owner_type: str | None
    owner_id: str | None
    run_id: str

    def released(self) -> LeaseClause | None:
        """Return the clause that ends the effect's claim, or None when nobody holds it."""
        if self.owner_type is None:
            return None
        return LeaseClause(
            op="released", generation=self.generation, owner_type=cast("OwnerType", self.owner_type)
        )

    def change(self, status: EffectStatus, *, attempt_count: int | None = None) -> EffectChange:
        """Return the effect's changeable columns in another status, without result or error."""
        count = self.attempt_count if attempt_count is None else attempt_count
        return EffectChange(effect_id=self.effect_id, status=status, attempt_count=count)

    def finished(
        self,
        outcome: Literal["applied", "rejected", "ambiguous", "interrupted"],
        at_ms: int,
        *,
        result_hash: str | None = None,
        error_hash: str | None = None,
    ) -> TryFinished | None:
        """Return the end of the open try, or None when none is open."""
        if self.status != "applying":
            return None
        return TryFinished(
            effect_id=self.effect_id,
            attempt_number=self.attempt_count,
            finished_at=at_ms,
            outcome=outcome,
            result_hash=result_hash,
            error_hash=error_hash,
        )

    def draft(self, event: Event) -> Draft:
        """Return an event of this effect's own resource."""
        return Draft("effect", self.effect_id, event, self.run_id)


def effect_state(read: Read, effect_id: str) -> EffectState:
    """Return an effect's state. Raises NotFound when there is no such effect of a run."""
    state = read.one(EffectState, SQL["effect_state"], effect_id=effect_id)
    if state is None:
        raise NotFound(f"There is no effect {effect_id}.", code="effectMissing", field="effectId")
    return state


def identity(
    run_id: str, run_resource_id: str, effect_type: str, node_path: str, visit: int
) -> tuple[str, str]:
    """Return the key of the effect that a visit may apply, and the ID that it has under it.

    Args:
        run_id: The run.
        run_resource_id: The run's resource, which is the effect's source.
        effect_type: The declared type.
        node_path: The node's full compiled path.
        visit: Which entry of that path, from 1.

    Returns:
        Key and effect ID.
    """
    key = effect_key(run_id, effect_type, node_path, visit)
    return key, ids.effect_id(run_resource_id, effect_type, key)


def is_applied(read: Read, effect_id: str) -> bool:
    """Whether an effect happened and its result is stored; not when there is no such effect."""
    state = read.one(EffectState, SQL["effect_state"], effect_id=effect_id)
    return state is not None and state.status == "applied"


def unsettled(read: Read, run_resource_id: str) -> list[EffectState]:
    """Return the run's effects that are promised or under way, in the order of their IDs."""
    return read.all(EffectState, SQL["unsettled_effects"], resource_id=run_resource_id)


def applying(read: Read, run_resource_id: str) -> EffectState | None:
    """Return the run's effect that is under way, or None: a run does one thing at a time."""
    return next((e for e in unsettled(read, run_resource_id) if e.status == "applying"), None)


def payload_of(read: Read, effect: EffectState) -> EffectPayload:
    """Return the payload of an action's effect."""
    return read.document(EffectPayload.parse, effect.payload_hash)


def is_manual(read: Read, effect: EffectState) -> bool:
    """Whether a person has to say what became of this effect when its result was lost."""
    return payload_of(read, effect).recovery == "manual"


class CutShort(NamedTuple):
    """What is known of a try without a result.

    Attributes:
        output_hash: What it had given so far, if its runner could still say.
        error_hash: Why it was cut short, if its runner could still say.
    """

    output_hash: str | None = None
    error_hash: str | None = None


_UNKNOWN: Final = CutShort()


def interrupted(
    effect: EffectState, at_ms: int, *, due_ms: int | None = None, cut: CutShort = _UNKNOWN
) -> Draft:
    """Return the event that ends an idempotent try without a result: it may be repeated.

    Args:
        effect: The effect.
        at_ms: Now.
        due_ms: When it is tried again at the earliest, if that is known.
        cut: What is known of the try.
    """
    return effect.draft(
        EffectAttemptFinished(
            lease=effect.released(),
            effect=effect.change("pending").model_copy(update={"next_attempt_at": due_ms}),
            attempt=effect.finished(
                "interrupted", at_ms, result_hash=cut.output_hash, error_hash=cut.error_hash
            ),
        )
    )


def scheduled(read: Read, run_resource_id: str, due_ms: int) -> list[Draft]:
    """Return the events that say when effects without a result are tried again.

    Args:
        read: Reads of the deciding transaction.
        run_resource_id: The run's resource.
        due_ms: When its retry is due.
    """
    return [
        effect.draft(
            EffectRetryScheduled(
                effect=effect.change("pending").model_copy(update={"next_attempt_at": due_ms})
            )
        )
        for effect in unsettled(read, run_resource_id)
        if effect.status == "pending"
    ]


def ambiguous(effect: EffectState, at_ms: int, cut: CutShort = _UNKNOWN) -> Draft:
    """Return the event after which only a person can say what became of a manual effect."""
    return effect.draft(
        EffectAmbiguous(
            lease=effect.released(),
            effect=effect.change("ambiguous"),
            attempt=effect.finished(
                "ambiguous", at_ms, result_hash=cut.output_hash, error_hash=cut.error_hash
            ),
        )
    )


def cancelled(effect: EffectState, at_ms: int) -> Draft:
    """Return the event that ends an effect nobody wants any more."""
    change = effect.change("cancelled").model_copy(update={"settled_at": at_ms})
    return effect.draft(
        EffectCancelled(
            lease=effect.released(), effect=change, attempt=effect.finished("interrupted", at_ms)
        )
    )


def abandoned(read: Read, run_resource_id: str, at_ms: int) -> list[Draft]:
    """Return the end of every unsettled effect of a run that ends (decision on uncertainty).

    A manual effect under way becomes ambiguous, every other one is cancelled.
    """
    return [
        ambiguous(effect, at_ms)
        if effect.status == "applying" and is_manual(read, effect)
        else cancelled(effect, at_ms)
        for effect in unsettled(read, run_resource_id)
    ]


def blocking_effect(read: Read, run_resource_id: str) -> str | None:
    """Return an effect of the run that is promised, under way or ambiguous, or None."""
    return read.one(str, SQL["blocking_effect"], resource_id=run_resource_id)


def ambiguous_effect(read: Read, run_resource_id: str) -> str | None:
    """Return an effect of the run that waits for a person, or None."""
    return read.one(str, SQL["ambiguous_effect"], resource_id=run_resource_id)
