"""Effects that a person looks at and decides about: payloads and answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from pi_workflows.base.limits import EVIDENCE_CHARS_MAX
from pi_workflows.definition.snapshot import Recovery
from pi_workflows.protocol.proposals import EffectStatus, EffectType, Failure
from pi_workflows.protocol.runs import RunStatus
from pi_workflows.protocol.wire import (
    AnyJson,
    Count,
    Id,
    Many,
    Maybe,
    Number,
    Payload,
    Text,
    WireModel,
)


class EffectList(Payload):
    """`effect.list`: effects of runs, the unsettled ones unless a status or an ID is named.

    `effectId` is an effect's ID or the beginning of one; those that begin so are listed by ID,
    whatever their run.
    """

    run_id: Maybe[Id] = None
    status: Maybe[EffectStatus] = None
    effect_id: Maybe[Id] = None
    cursor: Maybe[Count] = None


class EffectResolve(Payload):
    """`effect.resolve`: what became of an ambiguous effect, as a person found out.

    `confirm`: it happened; `retry`: try again; `reject`: it did not happen and shall not.
    """

    effect_id: Id
    attempt_number: Number
    action: Literal["confirm", "retry", "reject"]
    evidence: Annotated[str, StringConstraints(min_length=1, max_length=EVIDENCE_CHARS_MAX)]


class EffectTry(WireModel):
    """One numbered try of an effect. It is under way while it has no end; times are ms."""

    number: Number
    started_at: Count
    finished_at: Maybe[Count] = None
    outcome: Maybe[Literal["applied", "rejected", "ambiguous", "interrupted"]] = None
    error: Maybe[Failure] = None


class EffectDecision(WireModel):
    """What somebody said of an effect that was ambiguous: their class, and what they saw."""

    at: Count
    action: Literal["confirm", "retry", "reject"]
    actor: Literal[
        "session", "host", "controller", "channel", "human", "policy", "control", "system"
    ]
    evidence: AnyJson


class EffectChoice(WireModel):
    """What one of the three answers would do to this effect and its run.

    `status` is what the effect becomes. `run`: `goesOn`, to `nextNode` where that is known already;
    `completed` or `failed`, it ends so; `unchanged`, it has ended. `attempt` is the number of the
    new try. `needsResult` is the model that the evidence has to give as a JSON object; `refused`
    is the code under which the answer would be refused.
    """

    action: Literal["confirm", "retry", "reject"]
    status: EffectStatus
    run: Literal["goesOn", "completed", "failed", "unchanged"]
    next_node: Maybe[Text] = None
    attempt: Maybe[Number] = None
    needs_result: Maybe[Text] = None
    refused: Maybe[Text] = None


class EffectItem(WireModel):
    """One effect.

    `attempts` counts its tries, of which `tries` are the newest; `request` is a value or a content
    reference, as is `output`, what it gave or had given when it was cut short, and `progress`, what
    its node published last. `nextAttemptAt` is when it is tried again at the earliest. `choices`
    are there while it is ambiguous, and `decisions` are the newest ones about it. Times are ms.
    """

    effect_id: Id
    run_id: Id
    run_status: RunStatus
    run_paused: bool
    node_path: Text
    visit: Number
    effect_type: EffectType
    recovery: Recovery
    status: EffectStatus
    attempts: Count
    request: AnyJson
    last_error: Maybe[Failure] = None
    next_attempt_at: Maybe[Count] = None
    tries: Many[EffectTry]
    output: Maybe[AnyJson] = None
    progress: Maybe[AnyJson] = None
    choices: Many[EffectChoice] = ()
    decisions: Many[EffectDecision] = ()
    created_at: Count
    updated_at: Count


class EffectItems(WireModel):
    """Answer of `effect.list`."""

    items: Many[EffectItem]
    total: Count


class EffectResolved(WireModel):
    """Receipt of `effect.resolve`."""

    effect_id: Id
    run_id: Id
    attempt_number: Number
    action: Literal["confirm", "retry", "reject"]
    status: EffectStatus
