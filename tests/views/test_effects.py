"""The list of effects that people look at and decide about."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound
from pi_workflows.base.limits import INLINE_BYTES_MAX, PAGE_BYTES_MAX
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.effect.application import SettleEffect
from pi_workflows.domain.effect.recovery import ResolveEffect
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.rows import EffectStatus
from pi_workflows.domain.run.claim import LoseRunner
from pi_workflows.domain.run.control import CancelRun
from pi_workflows.protocol import proposals as wire
from pi_workflows.protocol.effects import EffectItems, EffectTry
from pi_workflows.store.records import Permit
from pi_workflows.views.effect_choices import effect_choices
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
    effect_id: str | None = None,
) -> EffectItems:
    """Return a page of effects."""
    with bench.store.snapshot() as read:
        return effect_items(read, run_id=run_id, status=status, effect_id=effect_id, cursor=cursor)


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


def test_an_effect_is_found_by_the_beginning_of_its_id(bench: Harness) -> None:
    """In every state and of every run, and of none that begins otherwise."""
    permit = bench.launch(workflow=LOOP)
    for number in (1, 2, 3):
        applied(bench, permit, number, number)
    known = sorted(item.effect_id for item in found(bench, None, "applied").items)
    assert [item.effect_id for item in found(bench, effect_id="effect-").items] == known
    for effect_id in known:
        page = found(bench, effect_id=effect_id)
        assert ([item.effect_id for item in page.items], page.total) == ([effect_id], 1)
        assert found(bench, "run-1", "applied", effect_id=effect_id).total == 1
        assert found(bench, None, "rejected", effect_id=effect_id).total == 0
    assert found(bench, effect_id="effect-~").total == 0


def test_the_desk_shows_what_is_known_of_a_try(bench: Harness) -> None:
    """Its times, why it was cut short, what it had given, and what its node published last."""
    permit = bench.launch(workflow=MANUAL)
    bench.do(begin("deploy", node_type="action"), permit=permit)
    answer = bench.do(reserve("deploy", "manual"), permit=permit)
    assert isinstance(answer.values, dict)
    effect_id = str(answer.values["effectId"])
    bench.do(try_effect(effect_id), permit=permit)
    attempt_id = ids.attempt_id("run-1", "deploy", 1)
    for done in (1, 2):
        said = Blob.json({"done": done})
        bench.do(RecordUpdate("run-1", attempt_id, "note", "deploy", said), permit=permit)
    began_ms = bench.clock.now_ms()
    bench.clock.advance_ms(70)
    cut = SettleEffect(
        "run-1",
        effect_id,
        1,
        "uncertain",
        result=Blob.json({"stdout": "half"}),
        failure=Failure("timedOut", "the time is over"),
    )
    bench.do(cut, permit=permit)
    (item,) = found(bench).items
    assert item.tries == (
        EffectTry(
            number=1,
            started_at=began_ms,
            finished_at=began_ms + 70,
            outcome="ambiguous",
            error=wire.Failure(code="timedOut", message="the time is over"),
        ),
    )
    shown = canonical.decode(canonical.encode(item.document()))
    assert isinstance(shown, dict)
    assert shown["output"] == {"stdout": "half"}
    assert shown["progress"] == {"done": 2}
    assert shown["lastError"] == {"code": "timedOut", "message": "the time is over"}


def test_the_desk_keeps_what_was_decided(bench: Harness) -> None:
    """The newest first, with the class of whoever said it, and what they saw."""
    effect_id = ambiguous(bench)
    bench.do(
        ResolveEffect("run-1", effect_id, 1, "retry", "nothing there"),
        actor=Actor("human", "operator:k1"),
    )
    (pending,) = found(bench).items
    assert (pending.status, pending.choices) == ("pending", ())
    assert pending.next_attempt_at == bench.clock.now_ms()
    permit = bench.relaunch()
    bench.do(begin("deploy", node_type="action", number=2), permit=permit)
    bench.do(try_effect(effect_id, 2), permit=permit)
    bench.do(LoseRunner("run-1", 0, counted=True, detail="killed"), permit=permit)
    bench.do(ResolveEffect("run-1", effect_id, 2, "confirm", "it is there"))
    (item,) = found(bench, status="applied").items
    shown = canonical.decode(canonical.encode(item.document()))
    assert isinstance(shown, dict)
    decisions = shown["decisions"]
    assert isinstance(decisions, list)
    assert [{**each, "at": 0} for each in decisions if isinstance(each, dict)] == [
        {"action": "confirm", "actor": "control", "at": 0, "evidence": "it is there"},
        {"action": "retry", "actor": "human", "at": 0, "evidence": "nothing there"},
    ]
    assert "operator:k1" not in str(shown)
    assert [each.outcome for each in item.tries] == ["ambiguous", "ambiguous"]


PLAIN: Json = {"from": "deploy", "to": "done"}
ROUTED: Json = {
    "from": "deploy",
    "on": "$result.outcome",
    "cases": {"ok": "done", "failed": "late"},
}
CHOSEN: Json = {"from": "deploy", "on": "$.route", "cases": {"a": "done", "b": "late"}}
MODEL: Json = {"outputModel": "deploy_workflow.Receipt"}


@pytest.mark.parametrize(
    ("edges", "more", "confirm", "reject"),
    [
        ([], {}, ("completed", None, None), ("failed", None)),
        ([PLAIN], {}, ("goesOn", "done", None), ("failed", None)),
        ([ROUTED], {}, ("goesOn", "done", None), ("goesOn", "late")),
        ([CHOSEN], {}, ("goesOn", None, None), ("failed", None)),
        ([PLAIN], MODEL, ("goesOn", "done", "deploy_workflow.Receipt"), ("failed", None)),
    ],
)
def test_each_answer_says_what_it_would_do(
    edges: list[dict[str, Json]],
    more: dict[str, Json],
    confirm: tuple[str, str | None, str | None],
    reject: tuple[str, str | None],
) -> None:
    """By the definition of this very run: where it goes, whether it ends, what is needed."""
    nodes: dict[str, dict[str, Json]] = {"deploy": {**action("manual"), **more}}
    nodes |= {name: {} for name in ("done", "late") if name in str(edges)}
    snapshot = Snapshot.parse(definition(nodes, edges).content)
    first, again, last = effect_choices(snapshot, "deploy", attempts=2, is_over=False)
    assert (first.run, first.next_node, first.needs_result) == confirm
    assert (again.run, again.next_node, again.attempt, again.refused) == (
        "goesOn",
        "deploy",
        3,
        None,
    )
    assert (last.run, last.next_node) == reject
    over = effect_choices(snapshot, "deploy", attempts=2, is_over=True)
    assert {each.run for each in over} == {"unchanged"}
    assert [each.refused for each in over] == [None, "runTerminal", None]


def test_what_a_choice_says_is_what_happens(bench: Harness) -> None:
    """The decider refuses what is said to be refused, and takes the rest."""
    effect_id = ambiguous(bench)
    bench.do(CancelRun("run-1"))
    (item,) = found(bench).items
    assert [each.refused for each in item.choices] == [None, "runTerminal", None]
    retry = bench.answer(ResolveEffect("run-1", effect_id, 1, "retry", "seen"))
    assert retry.code == "runTerminal"
    bench.do(ResolveEffect("run-1", effect_id, 1, "confirm", "seen"))
    assert found(bench, status="applied").total == 1
