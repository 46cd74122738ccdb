"""What scripted runners propose about effects, and how they come to one."""

from __future__ import annotations

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.protocol import proposals as wire
from tests.kernel.harness import definition
from tests.server.stage import Peer, Stage, start_of


def acting(recovery: str = "idempotent", **node: Json) -> Blob:
    """Return a definition whose first node is an action."""
    effect: Json = {"type": "deploy", "recovery": recovery}
    return definition(
        {"act": {"type": "action", "actionForm": "function", "effect": effect, **node}, "two": {}},
        [{"from": "act", "to": "two"}],
    )


def reserve_of(recovery: str = "idempotent", request: Json = "do it") -> wire.ReserveEffect:
    """Return the command that reserves the action's effect."""
    return wire.ReserveEffect.model_validate(
        {
            "attempt_id": ids.attempt_id("run-1", "act", 1),
            "effect_type": "deploy",
            "recovery": recovery,
            "request": {"json": request},
        }
    )


def settle_of(effect_id: str, outcome: str = "applied") -> wire.SettleEffect:
    """Return the command that settles its first try."""
    facts: dict[str, object] = {
        "effect_id": effect_id,
        "attempt_number": 1,
        "outcome": outcome,
    }
    if outcome == "applied":
        facts["result"] = {"json": {"id": 7}}
    return wire.SettleEffect.model_validate(facts)


def update_of(attempt_id: str, data: Json = None) -> wire.Update:
    """Return a progress update."""
    return wire.Update.model_validate(
        {"attempt_id": attempt_id, "type": "progress", "key": "all", "data": {"done": data}}
    )


async def applying(stage: Stage, recovery: str = "idempotent", **node: Json) -> tuple[Peer, str]:
    """Bring a run to where its effect is under way."""
    await stage.start(workflow=acting(recovery, **node))
    peer = await stage.begun()
    timeout_ms = node.get("timeoutMs", 900_000)
    assert isinstance(timeout_ms, int)
    await peer.accepted(start_of("act", node_type="action", timeout_ms=timeout_ms))
    reserved = await peer.accepted(reserve_of(recovery))
    assert isinstance(reserved.values, wire.EffectReservation)
    effect_id = reserved.values.effect_id
    await peer.accepted(wire.BeginEffect(effect_id=effect_id, attempt_number=1))
    return peer, effect_id
