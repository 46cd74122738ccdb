"""Actions: reserved, begun and settled, and never repeated when that could do harm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.definition.effects import effect_key
from pi_workflows.protocol.content import JsonRef
from pi_workflows.protocol.proposals import (
    BeginEffect,
    Command,
    EffectReservation,
    EffectStatus,
    Failure,
    FinishAttempt,
    FinishRun,
    Propose,
    ReserveEffect,
    SettleEffect,
    StartAttempt,
)
from pi_workflows.protocol.runner import OpenVisit, Resume
from tests.runner.peer import RUN_ID, Peer, launch_of, of_kind

pytestmark = pytest.mark.slow

ACTION = """
@action(effect=EFFECT, OPTIONS)
DEF act(ctx):
    print(f"called {ctx.effect_attempt} {ctx.effect_key}")
    BODY

workflow = define_workflow("acting", input=Input, start="act", nodes={"act": act, "end": compute(
    lambda ctx: [ctx.results["act"].outcome, ctx.outputs.get("act")])},
    edges=[switch("act", on="$result.outcome",
                  cases={"ok": "end", "failed": "end", "timed_out": "end"})])
"""


def acting(
    body: str = "return {'done': True}",
    *,
    recovery: str = "idempotent",
    options: str = "",
    define: str = "def",
) -> str:
    """Return a workflow with one action."""
    text = ACTION.replace("EFFECT", f'{recovery}_effect("test.act")').replace("OPTIONS", options)
    return text.replace("DEF", define).replace("BODY", body)


def known(
    status: EffectStatus, *, attempts: int = 1, result: JsonRef | None = None
) -> dict[str, EffectReservation]:
    """Return effects of which the run's one already has a history."""
    return {
        "test.act": EffectReservation(
            effect_id="effect-test.act", status=status, attempt_count=attempts, result=result
        )
    }


def names(peer: Peer) -> list[list[str]]:
    """Return the kinds of commands, by proposal."""
    return [[command.command for command in proposal.commands] for proposal in peer.proposals]


@pytest.mark.parametrize("define", ["def", "async def"])
def test_an_action_is_reserved_begun_and_settled_one_by_one(
    author: Callable[[str], Path], start: Callable[[], Peer], define: str
) -> None:
    """Each step of an effect is a proposal of its own; the result is the output."""
    peer = start()
    peer.begin(launch_of(author(acting(define=define)), {"n": 2}))
    peer.serve()
    assert names(peer)[:5] == [
        ["startAttempt"],
        ["reserveEffect"],
        ["beginEffect"],
        ["settleEffect"],
        ["finishAttempt", "startAttempt"],
    ]
    (reserve,) = of_kind(peer.commands, ReserveEffect)
    assert (reserve.effect_type, reserve.recovery) == ("test.act", "idempotent")
    assert peer.value(reserve.request) == {"input": {"n": 2}, "outputs": {}}
    (settle,) = of_kind(peer.commands, SettleEffect)
    assert (settle.outcome, peer.value(settle.result)) == ("applied", {"done": True})
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == ["ok", {"done": True}]
    assert f"called 1 {effect_key(RUN_ID, 'test.act', 'act', 1)}" in peer.printed()


def test_the_callback_waits_for_the_answer_to_its_beginning(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """As long as the numbered try is not recorded, nothing happens; a lost claim then ends it."""
    peer = start()
    peer.begin(launch_of(author(acting()), {}))
    for _ in range(2):
        peer.accept(peer.propose())
    begin = peer.propose()
    assert isinstance(begin.commands[0], BeginEffect)
    peer.answer(begin, "claimLost")
    assert peer.wait() == 0
    assert "called" not in peer.printed()


def test_an_applied_effect_is_adopted_without_calling_again(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The stored result is the output; nothing is begun."""
    peer = start()
    peer.effects = known("applied", result=JsonRef(value={"done": "before"}))
    peer.begin(launch_of(author(acting()), {}))
    peer.serve()
    assert not of_kind(peer.commands, BeginEffect)
    assert "called" not in peer.printed()
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == ["ok", {"done": "before"}]


def test_a_pending_effect_is_tried_under_the_next_number(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """After a crash the visit goes on: a new attempt of it, the next try of its effect."""
    peer = start()
    peer.effects = known("pending", attempts=2)
    resume = Resume(
        run_revision=9,
        step_total=0,
        visits={"act": 1},
        attempts={"act": 1},
        outputs={},
        results={},
        open=OpenVisit(attempt_id="lost", node_path="act", visit=1, tries=0),
    )
    peer.begin(launch_of(author(acting()), {}, resume=resume))
    peer.serve()
    (begin,) = of_kind(peer.commands, BeginEffect)
    assert begin.attempt_number == 3
    attempt = of_kind(peer.commands, StartAttempt)[0]
    assert (attempt.visit, attempt.attempt_number) == (1, 2)
    assert "called 3" in peer.printed()


@pytest.mark.parametrize("status", ["rejected", "cancelled", "ambiguous"])
def test_an_effect_that_is_settled_otherwise_fails_the_node(
    author: Callable[[str], Path], start: Callable[[], Peer], status: EffectStatus
) -> None:
    """Nothing is executed; the failure says how the effect stands."""
    peer = start()
    peer.effects = known(status)
    peer.begin(launch_of(author(acting()), {}))
    peer.serve()
    assert not of_kind(peer.commands, BeginEffect)
    finish = of_kind(peer.commands, FinishAttempt)[0]
    assert finish.error is not None
    assert finish.error.code == f"effect{status.capitalize()}"
    assert "called" not in peer.printed()


def test_a_refused_reservation_fails_the_node_with_its_reason(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Another request under the same key is a conflict that the route can follow."""
    peer = start()
    peer.begin(launch_of(author(acting()), {}))
    peer.accept(peer.propose())
    detail = Failure(code="effectConflict", message="another request")
    peer.answer(peer.propose(), "rejected", detail=detail)
    peer.serve()
    finish = of_kind(peer.commands, FinishAttempt)[0]
    assert finish.error == detail
    assert of_kind(peer.commands, FinishRun)[0].outcome == "completed"


@pytest.mark.parametrize("recovery", ["idempotent", "manual"])
def test_an_error_rejects_the_effect(
    author: Callable[[str], Path], start: Callable[[], Peer], recovery: str
) -> None:
    """A callback that raises says that it did not happen, whatever the effect's policy."""
    peer = start()
    body = "raise ValueError('refused by the provider')"
    peer.begin(launch_of(author(acting(body, recovery=recovery)), {}))
    peer.serve()
    (settle,) = of_kind(peer.commands, SettleEffect)
    assert settle.outcome == "rejected"
    assert settle.error is not None
    assert "refused by the provider" in settle.error.message


def test_a_declared_retry_begins_a_rejected_effect_again(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The second attempt of the visit is the second try of the same effect."""
    body = "if ctx.effect_attempt == 1:\n        raise ValueError('once')\n    return 'twice'"
    peer = start()
    peer.begin(launch_of(author(acting(body, options="retry=Retry(max_attempts=2)")), {}))
    peer.serve()
    assert [begin.attempt_number for begin in of_kind(peer.commands, BeginEffect)] == [1, 2]
    assert [s.outcome for s in of_kind(peer.commands, SettleEffect)] == ["rejected", "applied"]
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == ["ok", "twice"]


SLEEPING = "await trio.sleep_forever()"
BRIEF = "timeout=timedelta(milliseconds=100)"


def test_an_idempotent_effect_cut_short_is_uncertain_and_the_route_goes_on(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The timeout settles the try first, then the node."""
    peer = start()
    peer.begin(launch_of(author(acting(SLEEPING, define="async def", options=BRIEF)), {}))
    peer.serve()
    (settle,) = of_kind(peer.commands, SettleEffect)
    assert settle.outcome == "uncertain"
    assert of_kind(peer.commands, FinishAttempt)[0].outcome == "timed_out"
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == ["timed_out", None]


def test_a_manual_effect_cut_short_parks_the_run(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Nothing follows the uncertain settlement: a person has to say what happened."""
    text = acting(SLEEPING, define="async def", options=BRIEF, recovery="manual")
    peer = start()
    peer.begin(launch_of(author(text), {}))
    peer.serve()
    assert isinstance(peer.commands[-1], SettleEffect)
    assert peer.commands[-1].outcome == "uncertain"
    assert peer.commands[-1].error is not None
    assert peer.wait() == 0, peer.printed()


@pytest.mark.parametrize(
    ("body", "code"), [("return {1}", "notJson"), ("return 'x' * 9_000_000", "valueTooLarge")]
)
def test_a_result_that_cannot_be_stored_rejects_the_effect(
    author: Callable[[str], Path], start: Callable[[], Peer], body: str, code: str
) -> None:
    """There would be nothing to adopt later."""
    peer = start()
    peer.begin(launch_of(author(acting(body)), {}))
    peer.serve()
    (settle,) = of_kind(peer.commands, SettleEffect)
    assert settle.outcome == "rejected"
    assert settle.error is not None
    assert settle.error.code == code


MODELLED = """
class Done(BaseModel):
    count: int

@action(effect=idempotent_effect("test.act"))
def act(ctx) -> Done:
    return BODY

workflow = define_workflow("acting", input=Input, start="act", nodes={"act": act})
"""


def test_a_result_that_does_not_fit_its_model_fails_the_node_but_is_applied(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """What happened has happened: the raw result is stored, the node fails."""
    peer = start()
    peer.begin(launch_of(author(MODELLED.replace("BODY", "{'count': 'many'}")), {}))
    peer.serve()
    (settle,) = of_kind(peer.commands, SettleEffect)
    assert (settle.outcome, peer.value(settle.result)) == ("applied", {"count": "many"})
    (finish,) = of_kind(peer.commands, FinishAttempt)
    assert finish.error is not None
    assert finish.error.code == "outputInvalid"


def test_a_request_is_what_the_author_makes_it(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """`request=` replaces the input and the outputs as the effect's identity."""
    peer = start()
    peer.begin(launch_of(author(acting(options="request=lambda ctx: {'only': ctx.input.n}")), {}))
    peer.serve()
    (reserve,) = of_kind(peer.commands, ReserveEffect)
    assert peer.value(reserve.request) == {"only": 3}


def test_a_retry_of_a_later_visit_asks_for_the_same(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """An effect keeps its identity when the attempt before took the node's earlier output away."""
    peer = start()
    resume = Resume(
        run_revision=9,
        step_total=1,
        visits={"act": 2},
        attempts={"act": 2},
        outputs={"act": JsonRef(value="of the first visit")},
        results={},
        open=OpenVisit(attempt_id="lost", node_path="act", visit=2, tries=0),
    )
    body = "raise ValueError('no luck')"
    workflow = author(acting(body, options="retry=Retry(max_attempts=2)"))
    peer.begin(launch_of(workflow, {}, resume=resume))
    peer.serve()
    first, again = (peer.value(each.request) for each in of_kind(peer.commands, ReserveEffect))
    assert first == again


def test_a_failing_request_reserves_nothing(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The node fails before its effect has an identity."""
    peer = start()
    peer.begin(launch_of(author(acting(options="request=lambda ctx: 1 / 0")), {}))
    peer.serve()
    assert not of_kind(peer.commands, ReserveEffect)
    assert of_kind(peer.commands, FinishAttempt)[0].outcome == "failed"


def begun(command: Command) -> bool:
    """Say whether an effect begins."""
    return isinstance(command, BeginEffect)


WAITING = (
    "for _ in range(500):\n        if os.path.exists('go'): break\n        time.sleep(0.02)\n"
    "    return 'went'"
)


def test_a_pause_lets_a_manual_effect_come_to_its_end(
    author: Callable[[str], Path], start: Callable[[], Peer], tmp_path: Path
) -> None:
    """Its callback ends, its settlement is proposed, and nothing after it."""
    go = tmp_path / "go"
    body = WAITING.replace("'go'", repr(str(go)))
    peer = start()
    peer.begin(launch_of(author(acting(body, recovery="manual")), {}))
    peer.serve(until=begun)
    peer.stop("pause", grace_ms=60_000)
    go.touch()
    peer.serve()
    last = peer.commands[-1]
    assert isinstance(last, SettleEffect)
    assert (last.outcome, peer.value(last.result)) == ("applied", "went")
    assert peer.wait() == 0, peer.printed()


@pytest.mark.parametrize(
    ("recovery", "reason"), [("idempotent", "pause"), ("manual", "cancel"), ("manual", "shutdown")]
)
def test_any_other_stop_ends_the_callback(
    author: Callable[[str], Path], start: Callable[[], Peer], recovery: str, reason: str
) -> None:
    """The runner exits 0 without another proposal."""
    peer = start()
    peer.begin(launch_of(author(acting(WAITING, recovery=recovery)), {}))
    peer.serve(until=begun)
    peer.stop(reason, grace_ms=600_000)
    assert peer.wait() == 0, peer.printed()
    assert not isinstance(peer.next_or_end(), Propose)


def test_a_pause_waits_for_a_manual_effect_only_as_long_as_it_says(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """When the grace is over the runner leaves without a settlement."""
    peer = start()
    peer.begin(launch_of(author(acting(SLEEPING, define="async def", recovery="manual")), {}))
    peer.serve(until=begun)
    peer.stop("pause", grace_ms=100)
    assert peer.wait() == 0, peer.printed()
    assert isinstance(peer.commands[-1], BeginEffect)
