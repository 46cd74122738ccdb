"""Follow-ups: queued with their message in order, taken back by whom they belong to, due late."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from pi_workflows.base.canonical import decode
from pi_workflows.base.errors import Outcome
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.follow_up.queue import RemoveFollowUp
from pi_workflows.domain.follow_up.state import eligible
from pi_workflows.domain.message.branch import ReportBranch
from pi_workflows.domain.message.state import message_state
from pi_workflows.domain.message.terminal import TellEnd
from pi_workflows.domain.message.turn import EndTurn, StartTurn
from pi_workflows.domain.run.control import CancelRun
from pi_workflows.domain.run.start import RestartRun
from pi_workflows.kernel.order import Answer
from pi_workflows.store.records import Permit
from tests.kernel.harness import Harness, begin, end, finish
from tests.kernel.queueing import RUN, SESSION, key_of, launched, message_of, queue
from tests.kernel.rebuilt import assert_rebuilds

MODEL: Final = Actor("session", "pi")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Harness]:
    """A new database, which every test leaves rebuildable and without a violation."""
    harness = Harness(tmp_path)
    yield harness
    assert_rebuilds(harness.store)
    harness.store.close()


def complete(bench: Harness, permit: Permit) -> None:
    """Let the run come to its successful end."""
    bench.do(begin("one"), end("one", 1), begin("two"), end("two", 2), permit=permit)
    bench.do(finish(2), permit=permit)


def told(bench: Harness, message_id: str, reason: str = "completed", *, ends: bool = True) -> None:
    """Let the session be told a message and take its turn for it."""
    entry, turn = f"entry-{message_id}", f"turn-{message_id}"
    bench.do(
        ReportBranch(RUN, SESSION, message_id, entry, is_idle=False, has_pending_messages=False)
    )
    bench.do(StartTurn(RUN, SESSION, message_id, turn))
    if ends:
        bench.do(EndTurn(RUN, SESSION, message_id, turn, reason))  # type: ignore[arg-type] # a test's own


def told_end(bench: Harness, reason: str = "completed", *, ends: bool = True) -> None:
    """Let the session be told the run's end."""
    known = [row for row in bench.dump("workflow_messages") if row[3] == "terminal"]
    if not known:
        bench.do(TellEnd(RUN))
        known = [row for row in bench.dump("workflow_messages") if row[3] == "terminal"]
    told(bench, str(known[0][0]), reason, ends=ends)


def is_due(bench: Harness, name: str) -> bool:
    """Say whether a follow-up's turn has come."""
    with bench.store.snapshot() as read:
        return eligible(read, message_state(read, message_of(name)))


def statuses(bench: Harness) -> dict[object, object]:
    """Return each follow-up's status by the request that made it."""
    return {row[3]: row[10] for row in bench.dump("workflow_follow_ups")}


def messages(bench: Harness) -> dict[object, object]:
    """Return the status of each follow-up's message, by the follow-up."""
    return {row[4]: row[7] for row in bench.dump("workflow_messages") if row[3] == "followUp"}


def test_a_prompt_is_queued_with_its_message(bench: Harness) -> None:
    """One command makes both, and says which place it has."""
    launched(bench)
    answer = bench.do(queue("a"), actor=MODEL)
    kinds = [event.fact.type for event in answer.events]
    assert kinds == ["follow_up.queued", "message.created"]
    assert decode(answer.receipt or b"") == {
        "runId": RUN,
        "followUpId": key_of("a"),
        "order": 1,
        "state": "queued",
    }
    (row,) = bench.dump("workflow_follow_ups")
    assert row[2:9] == (RUN, "a", 1, SESSION, "session", "pi", "client")
    assert messages(bench) == {key_of("a"): "pending"}


def test_prompts_keep_the_order_in_which_they_were_accepted(bench: Harness) -> None:
    """Theirs in the run, and their messages' in the session."""
    launched(bench)
    for name in ("c", "a", "b"):
        bench.do(queue(name))
    rows = {row[3]: row[4] for row in bench.dump("workflow_follow_ups")}
    assert rows == {"c": 1, "a": 2, "b": 3}
    orders = {row[4]: row[6] for row in bench.dump("workflow_messages")}
    assert sorted(rows, key=lambda name: rows[name]) == sorted(  # type: ignore[arg-type,return-value] # numbers
        rows,
        key=lambda name: orders[key_of(str(name))],  # type: ignore[arg-type,return-value] # as above
    )


def test_two_prompts_of_one_group_have_two_places(bench: Harness) -> None:
    """Whoever is decided second is the later one."""
    launched(bench)
    orders = tuple(bench.order(queue(name)) for name in ("a", "b"))
    results = bench.kernel.commit(orders, bench.clock.now_ms())
    assert [isinstance(each, Answer) and each.code for each in results] == [None, None]
    assert {row[3]: row[4] for row in bench.dump("workflow_follow_ups")} == {"a": 1, "b": 2}


def test_a_repeated_request_queues_once(bench: Harness) -> None:
    """The same is adopted, another prompt under its name refused."""
    launched(bench)
    bench.do(queue("a"))
    assert bench.do(queue("a")).outcome is Outcome.ADOPTED
    assert bench.answer(queue("a", "something else")).code == "requestReused"
    assert statuses(bench) == {"a": "queued"}


def test_a_run_without_a_session_has_no_follow_ups(bench: Harness) -> None:
    """Nobody would be told."""
    bench.launch()
    assert bench.answer(queue("a")).code == "runHeadless"


def test_at_most_so_many_wait(bench: Harness) -> None:
    """One more is refused; a place becomes free when one is taken back."""
    launched(bench)
    for number in range(64):
        bench.do(queue(f"q{number}"))
    assert bench.answer(queue("more")).code == "followUpsTooMany"
    bench.do(RemoveFollowUp(RUN, key_of("q0")))
    assert bench.do(queue("more")).outcome is Outcome.ACCEPTED


@pytest.mark.parametrize("queued_by", ["session", "control", "human"])
@pytest.mark.parametrize("removed_by", ["session", "control", "human"])
def test_who_may_take_a_prompt_back(bench: Harness, queued_by: str, removed_by: str) -> None:
    """A person any; a model or a client only what one of its kind queued."""
    launched(bench)
    bench.do(queue("a"), actor=Actor(queued_by))  # type: ignore[arg-type] # one of the classes
    answer = bench.answer(RemoveFollowUp(RUN, key_of("a")), actor=Actor(removed_by))  # type: ignore[arg-type] # as above
    may = removed_by in ("human", queued_by)
    assert answer.code == (None if may else "followUpForeign")
    assert statuses(bench) == {"a": "removed" if may else "queued"}
    assert messages(bench) == {key_of("a"): "cancelled" if may else "pending"}


def test_taking_back_twice_is_adopted(bench: Harness) -> None:
    """Once removed it stays so, without another event."""
    launched(bench)
    bench.do(queue("a"))
    bench.do(RemoveFollowUp(RUN, key_of("a")))
    again = bench.do(RemoveFollowUp(RUN, key_of("a")))
    assert (again.outcome, again.events) == (Outcome.ADOPTED, ())
    assert bench.answer(RemoveFollowUp(RUN, "follow-up-none")).code == "followUpMissing"


@pytest.mark.parametrize("is_first", [True, False], ids=["remove-first", "sent-first"])
def test_taking_back_races_the_branch(bench: Harness, *, is_first: bool) -> None:
    """Evidence wins: what a branch holds was sent, whoever took it back."""
    permit = launched(bench)
    bench.do(queue("a"))
    complete(bench, permit)
    told_end(bench)
    report = ReportBranch(
        RUN, SESSION, message_of("a"), "entry", is_idle=False, has_pending_messages=False
    )
    orders = [bench.order(RemoveFollowUp(RUN, key_of("a"))), bench.order(report)]
    results = bench.kernel.commit(tuple(orders if is_first else orders[::-1]), bench.clock.now_ms())
    codes = {isinstance(each, Answer) and each.code for each in results}
    assert codes == ({None} if is_first else {None, "followUpSent"})
    assert messages(bench) == {key_of("a"): "sent"}
    assert statuses(bench) == {"a": "removed" if is_first else "queued"}


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "cancelled"])
def test_what_does_not_complete_has_nothing_to_follow_it(bench: Harness, outcome: str) -> None:
    """The end cancels each that waits, with its message; those taken back stay as they are."""
    permit = launched(bench)
    for name in ("a", "b", "c"):
        bench.do(queue(name))
    bench.do(RemoveFollowUp(RUN, key_of("b")))
    if outcome == "cancelled":
        bench.do(CancelRun(RUN))
    else:
        bench.do(begin("one"), end("one", outcome=outcome), permit=permit)
        bench.do(finish(outcome=outcome), permit=permit)
    assert statuses(bench) == {"a": "cancelled", "b": "removed", "c": "cancelled"}
    assert set(messages(bench).values()) == {"cancelled"}
    assert bench.answer(RemoveFollowUp(RUN, key_of("a"))).code == "followUpCancelled"


@pytest.mark.parametrize("is_first", [True, False], ids=["queue-first", "end-first"])
def test_a_prompt_races_the_end_of_its_run(bench: Harness, *, is_first: bool) -> None:
    """Before it, it is cancelled with the run; after it, it is refused."""
    launched(bench)
    orders = [bench.order(queue("a")), bench.order(CancelRun(RUN))]
    results = bench.kernel.commit(tuple(orders if is_first else orders[::-1]), bench.clock.now_ms())
    codes = {isinstance(each, Answer) and each.code for each in results}
    assert codes == ({None} if is_first else {None, "runTerminal"})
    assert statuses(bench) == ({"a": "cancelled"} if is_first else {})


def test_a_restart_has_none_of_them(bench: Harness) -> None:
    """What was to follow one run never follows another."""
    launched(bench)
    bench.do(queue("a"))
    bench.do(CancelRun(RUN))
    bench.do(RestartRun(RUN, bench.revision()))
    assert [row[2] for row in bench.dump("workflow_follow_ups")] == [RUN]


def test_its_turn_comes_after_the_end_was_told(bench: Harness) -> None:
    """The run completed, its end was sent, and the turn for it succeeded."""
    permit = launched(bench)
    bench.do(queue("a"))
    assert not is_due(bench, "a")
    complete(bench, permit)
    assert not is_due(bench, "a")
    told_end(bench, ends=False)
    assert not is_due(bench, "a")
    terminal = next(str(row[0]) for row in bench.dump("workflow_messages") if row[3] == "terminal")
    bench.do(EndTurn(RUN, SESSION, terminal, f"turn-{terminal}", "completed"))
    assert is_due(bench, "a")


@pytest.mark.parametrize("reason", ["aborted", "error", "lost"])
def test_a_turn_that_failed_is_followed_by_nothing(bench: Harness, reason: str) -> None:
    """Only a session that took its run's end in goes on."""
    permit = launched(bench)
    bench.do(queue("a"))
    complete(bench, permit)
    told_end(bench, reason)
    assert not is_due(bench, "a")


def test_one_after_the_other(bench: Harness) -> None:
    """A later one waits until every earlier one is settled or gone, however its turn ended."""
    permit = launched(bench)
    for name in ("a", "b", "c"):
        bench.do(queue(name))
    complete(bench, permit)
    told_end(bench)
    assert [is_due(bench, name) for name in "abc"] == [True, False, False]
    told(bench, message_of("a"), "error")
    assert [is_due(bench, name) for name in "bc"] == [True, False]
    bench.do(RemoveFollowUp(RUN, key_of("b")))
    assert [is_due(bench, name) for name in "bc"] == [False, True]


def test_none_is_due_while_another_run_has_the_session(bench: Harness) -> None:
    """A run that goes on, waits or is paused keeps its session to itself."""
    permit = launched(bench)
    bench.do(queue("a"))
    complete(bench, permit)
    told_end(bench)
    bench.do(bench.start("run-2", session=SESSION))
    assert not is_due(bench, "a")
    bench.do(CancelRun("run-2"))
    assert is_due(bench, "a")
