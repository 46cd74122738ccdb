"""Effects that a person looks at and decides about: payloads and answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from pi_workflows.base.limits import EVIDENCE_CHARS_MAX
from pi_workflows.definition.snapshot import Recovery
from pi_workflows.protocol.proposals import EffectStatus, EffectType, Failure
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
    """`effect.list`: effects of runs, the unsettled ones unless a status is named."""

    run_id: Maybe[Id] = None
    status: Maybe[EffectStatus] = None
    cursor: Maybe[Count] = None


class EffectResolve(Payload):
    """`effect.resolve`: what became of an ambiguous effect, as a person found out.

    `confirm`: it happened; `retry`: try again; `reject`: it did not happen and shall not.
    """

    effect_id: Id
    attempt_number: Number
    action: Literal["confirm", "retry", "reject"]
    evidence: Annotated[str, StringConstraints(min_length=1, max_length=EVIDENCE_CHARS_MAX)]


class EffectItem(WireModel):
    """One effect.

    `attempts` counts its tries; `request` is a value or a content reference. Times are ms.
    """

    effect_id: Id
    run_id: Id
    node_path: Text
    visit: Number
    effect_type: EffectType
    recovery: Recovery
    status: EffectStatus
    attempts: Count
    request: AnyJson
    last_error: Maybe[Failure] = None
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
