"""The list of effects that people look at and decide about."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound
from pi_workflows.base.limits import INLINE_BYTES_MAX, PAGE_BYTES_MAX
from pi_workflows.domain.effect.recovery import ResolveEffect
from pi_workflows.domain.rows import EffectStatus
from pi_workflows.domain.run.claim import LoseRunner
from pi_workflows.protocol.effects import EffectItems
from pi_workflows.store.records import Permit
from pi_workflows.views.effects import effect_items
from tests.kernel.harness import (
    Harness,
    begin,
    definition,
    end,
    finish,
    reserve,
    settle,
    try_effect,
)


def action(recovery: str) -> dict[str, Json]:
    """Return a deploying action with a policy."""
    return {
        "type": "action",
        "actionForm": "function",
        "effect": {"type": "deploy", "recovery": recovery},
    }


MANUAL = definition({"deploy": action("manual")})
LOOP = definition({"deploy": action("idempotent")}, [{"from": "deploy", "to": "deploy"}])


def found(
    bench: Harness,
    run_id: str | None = None,
    status: EffectStatus | None = None,
    cursor: int | None = None,
) -> EffectItems:
    """Return a page of effects."""
    with bench.store.snapshot() as read:
        return effect_items(read, run_id=run_id, status=status, cursor=cursor)


def ambiguous(bench: Harness) -> str:
    """Let a manual effect's runner die; return the effect's ID."""
    permit = bench.launch(workflow=MANUAL)
    bench.do(begin("deploy", node_type="action"), permit=permit)
    answer = bench.do(reserve("deploy", "manual", {"to": "production"}), permit=permit)
    assert isinstance(answer.values, dict)
    effect_id = str(answer.values["effectId"])
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(LoseRunner("run-1", 0, counted=True, detail="killed"), permit=permit)
    return effect_id


def test_an_item_says_what_was_asked_for(bench: Harness, snapshot: SnapshotAssertion) -> None:
    """An item names its run, node, visit, policy, state and tries, and shows the request."""
    ambiguous(bench)
    assert canonical.decode(canonical.encode(found(bench).document())) == snapshot


def test_a_resolved_effect_is_listed_by_its_state(bench: Harness) -> None:
    """Without a state the unsettled are listed; a rejected one has the evidence as its error."""
    effect_id = ambiguous(bench)
    assert [item.effect_id for item in found(bench).items] == [effect_id]
    bench.do(ResolveEffect("run-1", effect_id, 1, "reject", "the log says no"))
    assert found(bench).total == 0
    rejected = found(bench, "run-1", "rejected")
    assert rejected.total == 1
    error = rejected.items[0].last_error
    assert error is not None
    assert (error.code, error.message) == ("effectRejected", "the log says no")


def test_what_settles_the_queue_is_no_effect_of_an_action(bench: Harness) -> None:
    """The engine's own effect is listed in no state."""
    permit = bench.launch(workflow=definition({"one": {}}))
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", 1), finish(1), permit=permit)
    states: tuple[EffectStatus, ...] = ("pending", "applied")
    assert [found(bench, run, state).total for run in ("run-1", None) for state in states] == [
        0
    ] * 4


def test_an_unknown_run_has_no_list(bench: Harness) -> None:
    """A run that does not exist is named, and not shown as one without effects."""
    with pytest.raises(NotFound):
        found(bench, "ghost")


def applied(bench: Harness, permit: Permit, number: int, request: Json) -> None:
    """Let one visit of the loop apply its effect."""
    bench.do(
        begin("deploy", visit=number, number=number, node_type="action"),
        permit=permit,
    )
    answer = bench.do(reserve("deploy", request=request, number=number), permit=permit)
    assert isinstance(answer.values, dict)
    effect_id = str(answer.values["effectId"])
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(settle(effect_id), permit=permit)
    bench.clock.advance_ms(1)
    bench.do(end("deploy", number, number=number), permit=permit)


def test_effects_come_in_bounded_pages_oldest_first(bench: Harness) -> None:
    """Pages follow one another by the number of items seen, each within 64 KiB."""
    permit = bench.launch(workflow=LOOP)
    for number in range(1, 8):
        applied(bench, permit, number, {"n": number, "text": "x" * 15_000})
    visits: list[int] = []
    while len(visits) < 7:
        page = found(bench, "run-1", "applied", len(visits))
        assert page.total == 7
        assert len(canonical.encode(page.document()["items"])) <= PAGE_BYTES_MAX
        assert page.items
        visits += [item.visit for item in page.items]
    assert visits == list(range(1, 8))
    assert found(bench, None, "applied").total == 7


def test_a_large_request_is_a_reference(bench: Harness) -> None:
    """Over 16 KiB a request is referred to."""
    permit = bench.launch(workflow=LOOP)
    applied(bench, permit, 1, "x" * INLINE_BYTES_MAX)
    (item,) = found(bench, "run-1", "applied").items
    request = canonical.decode(canonical.encode(item.request))
    assert isinstance(request, dict)
    assert list(request) == ["$artifact"]
