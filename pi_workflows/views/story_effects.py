"""How a story tells the events of effects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pi_workflows.domain.effect.events import (
    EffectAmbiguous,
    EffectApplied,
    EffectAttemptFinished,
    EffectAttemptStarted,
    EffectCancelled,
    EffectRecovered,
    EffectRejected,
    EffectReserved,
)
from pi_workflows.domain.effect.state import SETTLE_QUEUE
from pi_workflows.domain.run.events import RunEffectAmbiguous
from pi_workflows.views.story_narrator import Effect, Narrator

_DECIDED: Final[Mapping[str, str]] = {
    "confirm": "said that {effect} had happened",
    "retry": "asked to try {effect} again",
    "reject": "said that {effect} had not happened",
}


def reserved(narrator: Narrator, fact: EffectReserved) -> None:
    """Tell that an effect got its identity; the queue's own settlement is nobody's business."""
    row = fact.effect
    if row.effect_type == SETTLE_QUEUE:
        return
    payload = narrator.values.effect(row.payload_hash)
    narrator.effects[row.effect_id] = Effect(payload.node_path, row.effect_type)
    repeatable = "may be repeated" if payload.recovery == "idempotent" else "happens once"
    narrator.hold(
        row.effect_id,
        f"{payload.node_path} announced its effect {row.effect_type}, which {repeatable}",
        clause=f"announced its effect {row.effect_type}",
        node=payload.node_path,
    )


def attempt_started(narrator: Narrator, fact: EffectAttemptStarted) -> None:
    """Tell that a try began."""
    effect = narrator.effects[fact.effect.effect_id]
    effect.tries = fact.attempt.attempt_number
    what = f"began try {effect.tries} of its effect {effect.type}"
    narrator.hold(
        fact.effect.effect_id, f"{effect.node_id} {what}", clause=what, node=effect.node_id
    )


def attempt_finished(narrator: Narrator, fact: EffectAttemptFinished) -> None:
    """Tell that a try was cut short."""
    effect = narrator.effects[fact.effect.effect_id]
    what = f"try {effect.tries} of its effect {effect.type}"
    if not narrator.add(f"{what} was cut short and may be repeated"):
        narrator.hold(
            fact.effect.effect_id,
            f"{effect.node_id} gave up {what}, which may be repeated",
            clause=f"gave up {what}",
            node=effect.node_id,
        )


def applied(narrator: Narrator, fact: EffectApplied) -> None:
    """Tell that an effect happened."""
    effect = narrator.effects.get(fact.effect.effect_id)
    if effect is None:
        # The queue's own settlement.
        return
    result = fact.effect.result_hash
    gave = f" and gave {narrator.values.described(result)}" if result is not None else ""
    narrator.hold(
        fact.effect.effect_id,
        f"The effect {effect.type} of {effect.node_id} was applied at try {effect.tries}{gave}",
        clause=f"applied its effect {effect.type} (try {effect.tries})",
        node=effect.node_id,
    )


def rejected(narrator: Narrator, fact: EffectRejected) -> None:
    """Tell that an effect was refused."""
    effect = narrator.effects[fact.effect.effect_id]
    error = fact.effect.error_hash
    why = f": {narrator.values.failure(error)}" if error is not None else ""
    narrator.hold(
        fact.effect.effect_id,
        f"The effect {effect.type} of {effect.node_id} was refused at try {effect.tries}{why}",
        clause=f"had its effect {effect.type} refused (try {effect.tries})",
        node=effect.node_id,
    )


def ambiguous(narrator: Narrator, fact: EffectAmbiguous) -> None:
    """Tell that nobody knows whether an effect happened, unless the run's own event says so."""
    effect = narrator.effects[fact.effect.effect_id]
    effect.doubtful_since_ms = narrator.told.at_ms
    if isinstance(narrator.before, RunEffectAmbiguous):
        return
    what = f"whether the effect {effect.type} of {effect.node_id} had happened"
    if not narrator.add(f"nobody knew {what}"):
        narrator.say(f"Nobody knew {what}", node=effect.node_id)


def cancelled(narrator: Narrator, fact: EffectCancelled) -> None:
    """Tell that nobody wants an effect any more."""
    effect = narrator.effects[fact.effect.effect_id]
    if not narrator.add(f"its effect {effect.type} was given up"):
        narrator.say(
            f"The effect {effect.type} of {effect.node_id} was given up", node=effect.node_id
        )


def recovered(narrator: Narrator, fact: EffectRecovered) -> None:
    """Tell what somebody decided about an effect that was in doubt."""
    effect = narrator.effects[fact.effect.effect_id]
    decided = _DECIDED[fact.action].format(effect=f"the effect {effect.type} of {effect.node_id}")
    since_ms = effect.doubtful_since_ms
    after = f", after {narrator.since(since_ms)} of doubt" if since_ms is not None else ""
    evidence = narrator.values.described(fact.evidence_hash, "evidence")
    narrator.say(f"{narrator.who} {decided}{after}, with {evidence}", node=effect.node_id)
