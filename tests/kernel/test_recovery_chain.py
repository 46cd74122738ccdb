"""What a run's end may set off by itself: one launch for each end, two for each chain."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from pi_workflows.base import canonical
from pi_workflows.domain.message.recovery import StopRecovery
from pi_workflows.domain.run.control import CancelRun
from pi_workflows.domain.run.start import RestartRun, StartRun, restart_id
from pi_workflows.kernel.order import Answer
from tests.kernel.conversing import RUN, TURNS, told_end
from tests.kernel.harness import (
    LINE,
    SESSION,
    Harness,
    begin,
    definition,
    end,
    end_message,
    end_turn,
    finish,
    report_branch,
    start_turn,
    tell_end,
)
from tests.kernel.racing import Ending, Move, raced, standing, told

OTHER: Final = definition({"other": {}})


def launched(bench: Harness, run_id: str, source: str = RUN, *, session: str = SESSION) -> StartRun:
    """Return the command with which a session launches a run from another one's end."""
    start = bench.start(run_id, OTHER, session=session)
    return replace(start, recovery_message_id=end_message(source))


def named(answer: Answer) -> canonical.Json:
    """Return the run that a launch is told."""
    receipt = canonical.decode(answer.receipt or b"{}")
    assert isinstance(receipt, dict)
    return receipt["runId"]


def failed(bench: Harness, run_id: str, workflow: str = "other") -> None:
    """Let a queued run fail, and its session work on its end."""
    permit = bench.relaunch(run_id)
    bench.do(begin(workflow, run_id=run_id), permit=permit)
    bench.do(end(workflow, run_id=run_id, outcome="failed"), permit=permit)
    bench.do(finish(run_id=run_id, outcome="failed"), permit=permit)
    bench.do(tell_end(run_id))
    message = end_message(run_id)
    bench.do(report_branch(message, f"entry-{run_id}", run_id=run_id))
    bench.do(start_turn(message, f"turn-{run_id}", run_id=run_id))


def handed_over(bench: Harness, source: str) -> None:
    """Let the session's turn for an end be over, so that another one may begin."""
    turn = TURNS[1] if source == RUN else f"turn-{source}"
    bench.do(end_turn(end_message(source), turn, run_id=source))


def lineage(bench: Harness, run_id: str) -> tuple[object, object]:
    """Return the chain that a run belongs to, and the end that it was launched from."""
    row = next(row for row in bench.dump("runs") if row[0] == run_id)
    return row[5], row[6]


def test_a_launch_is_bound_to_the_end_that_it_came_from(bench: Harness) -> None:
    """By start or by restart; a restart is also its parent's child."""
    told_end(bench)
    child = restart_id(RUN, bench.revision())
    bench.do(RestartRun(RUN, bench.revision(), end_message()))
    assert lineage(bench, child) == (RUN, end_message())
    row = next(row for row in bench.dump("runs") if row[0] == child)
    assert row[3:5] == (RUN, RUN)


def test_case_31_a_second_launch_adopts_the_first(bench: Harness) -> None:
    """Also when the first run has ended, the turn is over, or nothing more may follow."""
    told_end(bench)
    assert named(bench.do(launched(bench, "run-2"))) == "run-2"
    assert (again := bench.do(launched(bench, "run-3"))).outcome.value == "adopted"
    assert named(again) == "run-2"
    handed_over(bench, RUN)
    failed(bench, "run-2")
    later = bench.do(launched(bench, "run-4"))
    assert (told(later), named(later)) == ("adopted", "run-2")
    assert named(bench.do(_restart(bench, RUN))) == "run-2"
    bench.do(StopRecovery(RUN, end_message(), "cancelled"))
    assert named(bench.do(launched(bench, "run-5"))) == "run-2"
    assert {row[0] for row in bench.dump("runs")} == {RUN, "run-2"}


def test_case_31_the_third_of_a_chain_is_refused(bench: Harness) -> None:
    """Whatever commands and workflows the two before were."""
    told_end(bench)
    bench.do(launched(bench, "run-2"))
    handed_over(bench, RUN)
    failed(bench, "run-2")
    second = restart_id("run-2", bench.revision("run-2"))
    bench.do(RestartRun("run-2", bench.revision("run-2"), end_message("run-2")))
    assert lineage(bench, second) == (RUN, end_message("run-2"))
    handed_over(bench, "run-2")
    failed(bench, second)
    before = bench.dump("events")
    third = bench.answer(launched(bench, "run-4", second))
    assert told(third) == "recoveryLimit"
    assert told(bench.answer(_restart(bench, second))) == "recoveryLimit"
    assert bench.dump("events") == before


def _restart(bench: Harness, run_id: str) -> RestartRun:
    return RestartRun(run_id, bench.revision(run_id), end_message(run_id))


def test_case_31_what_a_person_asks_for_does_not_count(bench: Harness) -> None:
    """A new request is new authority: it begins a chain of its own."""
    told_end(bench)
    bench.do(launched(bench, "run-2"))
    handed_over(bench, RUN)
    failed(bench, "run-2")
    bench.do(launched(bench, "run-3", "run-2"))
    handed_over(bench, "run-2")
    failed(bench, "run-3")
    assert told(bench.answer(launched(bench, "run-4", "run-3"))) == "recoveryLimit"
    bench.do(bench.start("run-4", OTHER, session=SESSION))
    assert lineage(bench, "run-4") == (None, None)
    handed_over(bench, "run-3")
    failed(bench, "run-4")
    bench.do(launched(bench, "run-5", "run-4"))
    assert lineage(bench, "run-5") == ("run-4", end_message("run-4"))


@pytest.mark.parametrize("stop", ["cancelled", "interrupted", "timed_out"])
def test_a_stop_blocks_what_follows_and_is_kept(bench: Harness, stop: str) -> None:
    """The first reason stays; a person may still start or restart the run."""
    told_end(bench)
    bench.do(StopRecovery(RUN, end_message(), stop))  # type: ignore[arg-type] # the three reasons
    later = bench.answer(StopRecovery(RUN, end_message(), "cancelled"))
    assert told(later) == "adopted"
    assert standing(bench)["stops"] == [stop]
    assert told(bench.answer(launched(bench, "run-2"))) == "recoveryStopped"
    assert told(bench.answer(_restart(bench, RUN))) == "recoveryStopped"
    bench.do(RestartRun(RUN, bench.revision()))


def test_a_cancel_of_an_ended_run_stops_its_recovery(bench: Harness) -> None:
    """While its session works on the end; the run's own status stays."""
    told_end(bench)
    answer = bench.do(CancelRun(RUN))
    receipt = canonical.decode(answer.receipt or b"")
    assert receipt == {"runId": RUN, "status": "failed", "recoveryStopped": True}
    assert told(bench.answer(CancelRun(RUN))) == "adopted"
    assert standing(bench)["stops"] == ["cancelled"]
    handed_over(bench, RUN)
    assert told(bench.answer(CancelRun(RUN))) == "runTerminal"


def test_a_launch_needs_the_open_turn_of_that_end(bench: Harness) -> None:
    """Nobody launches from a step, from another session's end, or after its turn."""
    told_end(bench)
    foreign = launched(bench, "run-2", session="session-2")
    assert told(bench.answer(foreign)) == "messageTarget"
    unknown = replace(bench.start("run-2", OTHER), recovery_message_id="message-of-nobody")
    assert told(bench.answer(unknown)) == "messageMissing"
    step = next(str(row[0]) for row in bench.dump("workflow_messages") if row[3] == "step")
    wrong = replace(launched(bench, "run-2"), recovery_message_id=step)
    assert told(bench.answer(wrong)) == "messageKind"
    handed_over(bench, RUN)
    assert told(bench.answer(launched(bench, "run-2"))) == "turnNotOpen"
    assert told(bench.answer(_restart(bench, RUN))) == "turnNotOpen"


def test_a_cancelled_run_is_never_restarted_by_itself(bench: Harness) -> None:
    """Its end is told, and asks for nothing."""
    bench.do(bench.start(session=SESSION))
    bench.do(CancelRun(RUN))
    bench.do(tell_end())
    bench.do(report_branch(end_message(), "entry-1"))
    assert told(bench.answer(_restart(bench, RUN))) == "runCancelled"


_WON: Final = {"runs": 2}
_RACES: Final[dict[str, tuple[Ending, Ending]]] = {
    "two launches": (Ending("accepted", "adopted", _WON), Ending("accepted", "adopted", _WON)),
    "launch and restart": (
        Ending("accepted", "adopted", _WON),
        Ending("accepted", "adopted", _WON),
    ),
    "launch and stop": (
        Ending("accepted", "accepted", {"runs": 2, "stops": ["cancelled"]}),
        Ending("accepted", "recoveryStopped", {"runs": 1, "stops": ["cancelled"]}),
    ),
    "launch and the end of its turn": (
        Ending("accepted", "accepted", _WON),
        Ending("accepted", "turnNotOpen", {"runs": 1}),
    ),
    "launch and a person's run": (
        Ending("accepted", "sessionBusy", _WON),
        Ending("accepted", "sessionBusy", _WON),
    ),
}


@pytest.mark.parametrize("is_back", [False, True], ids=["forth", "back"])
@pytest.mark.parametrize("name", _RACES)
def test_one_launch_wins(bench: Harness, name: str, *, is_back: bool) -> None:
    """From one end there is one run, whoever was first, and a stop is before it or after it."""
    told_end(bench)
    others = {
        "two launches": launched(bench, "run-3"),
        "launch and restart": _restart(bench, RUN),
        "launch and stop": StopRecovery(RUN, end_message(), "cancelled"),
        "launch and the end of its turn": end_turn(end_message(), TURNS[1]),
        "launch and a person's run": bench.start("run-3", LINE, session=SESSION),
    }
    moves = (Move(launched(bench, "run-2")), Move(others[name]))
    wanted = _RACES[name][is_back]
    assert raced(bench, None, (moves[1], moves[0]) if is_back else moves) == wanted[:2]
    left = standing(bench)
    assert {each: left[each] for each in wanted.standing} == wanted.standing
