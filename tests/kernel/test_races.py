"""The races of the state contract, section 4: in each order one wins, and the other is told so.

Held elsewhere: four ways to end a decision (`test_decisions.py`, case 19), settings against
settings and routes (`test_settings.py`), follow-ups (`test_follow_ups.py`), flushes of captures
(`test_capture.py`), two workers and two servers (`tests/store`, `tests/server/test_lock.py`).
"""

from __future__ import annotations

from typing import Final

import pytest

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.domain.effect.state import identity
from pi_workflows.domain.message.turn import ResumeClock
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import ClaimRun
from pi_workflows.domain.run.control import CancelRun, PauseRun
from pi_workflows.domain.run.ending import SettleQueue
from pi_workflows.domain.run.start import RestartRun
from pi_workflows.store.records import Permit
from tests.kernel.conversing import REQUEST, RUN, STEP, asked, begun, working
from tests.kernel.harness import (
    Harness,
    ask,
    ask_agent,
    ask_text,
    begin,
    definition,
    end,
    end_turn,
    expire,
    finish,
    judge,
    report_branch,
    request_of,
    reserve,
    settle,
    start_turn,
    step_message,
    submit,
    text,
    try_effect,
)
from tests.kernel.racing import Ending, Move, Race, raced, standing
from tests.kernel.workflows import WORKFLOWS, speaker

CANCEL: Final = Move(CancelRun(RUN))
PAUSE: Final = Move(PauseRun(RUN))
_SPEECH: Final = definition({"say": speaker(80)})
_GATE: Final = definition({"gate": {"type": "checkpoint", "timeoutMs": 0}})
_SAY: Final = step_message("say")


def _idle(bench: Harness) -> Permit:
    return bench.launch()


def _queued(bench: Harness) -> None:
    bench.do(bench.start())


def _done(bench: Harness) -> Permit:
    permit = bench.launch()
    bench.do(begin("one"), end("one", 1), begin("two"), end("two", 2), permit=permit)
    return permit


def _cancelled(bench: Harness) -> None:
    bench.do(bench.start())
    bench.do(CancelRun(RUN))


def _told(bench: Harness) -> None:
    asked(bench)
    working(bench)


def _sent(bench: Harness) -> None:
    asked(bench)
    bench.do(report_branch(STEP, "entry-1"))


def _judging(bench: Harness) -> None:
    _told(bench)
    bench.do(submit(REQUEST))


def _saying(bench: Harness) -> None:
    permit = bench.launch(workflow=_SPEECH, session="session-1")
    bench.do(begin("say", node_type="agent"), ask_text("say"), permit=permit)
    bench.do(report_branch(_SAY, "entry-1"), start_turn(_SAY))


def _gated(bench: Harness) -> None:
    permit = bench.launch(workflow=_GATE)
    bench.do(begin("gate", node_type="checkpoint"), ask("gate"), permit=permit)


def _answer(name: str, value: str) -> Move:
    return Move(AnswerCheckpoint(RUN, request_of("gate"), 1, name, name, Blob.json(value)))


_EFFECT: Final = identity(RUN, ids.resource_id("run", RUN), "deploy", "deploy", 1)[1]


def _acting(bench: Harness) -> Permit:
    permit = bench.launch(workflow=WORKFLOWS["manual"])
    bench.do(begin("deploy", node_type="action"), permit=permit)
    return permit


def _reserved(bench: Harness) -> Permit:
    permit = _acting(bench)
    bench.do(reserve("deploy", "manual"), permit=permit)
    return permit


def _trying(bench: Harness) -> Permit:
    permit = _reserved(bench)
    bench.do(try_effect(_EFFECT), permit=permit)
    return permit


RACES: Final[dict[str, Race]] = {
    "complete and cancel": Race(
        _done,
        Move(finish(2), is_runners=True),
        CANCEL,
        Ending("accepted", "runTerminal", {"run": "completed", "queue": "done"}),
        Ending("accepted", "missingAuthority", {"run": "cancelled", "queue": "cancelled"}),
    ),
    "complete and fail": Race(
        _done,
        Move(finish(2), is_runners=True),
        Move(finish(outcome="failed"), is_runners=True),
        Ending("accepted", "missingAuthority", {"run": "completed", "queue": "done"}),
        Ending("accepted", "missingAuthority", {"run": "failed", "queue": "failed"}),
    ),
    "complete and pause": Race(
        _done,
        Move(finish(2), is_runners=True),
        PAUSE,
        Ending("accepted", "runTerminal", {"run": "completed", "paused": False}),
        Ending("accepted", "missingAuthority", {"run": "running", "paused": True}),
    ),
    "two owners": Race(
        _queued,
        Move(ClaimRun(RUN)),
        Move(ClaimRun(RUN)),
        Ending("accepted", "runNotDue", {"queue": "starting"}),
        Ending("accepted", "runNotDue", {"queue": "starting"}),
    ),
    "claim and cancel": Race(
        _queued,
        Move(ClaimRun(RUN)),
        CANCEL,
        Ending("accepted", "accepted", {"run": "cancelled", "queue": "cancelled"}),
        Ending("accepted", "runTerminal", {"run": "cancelled", "queue": "cancelled"}),
    ),
    "two attempts": Race(
        _idle,
        Move(begin("one"), is_runners=True),
        Move(begin("one"), is_runners=True),
        Ending("accepted", "attemptOpen", {"attempts": ["running"], "intervals": [True]}),
        Ending("accepted", "attemptOpen", {"attempts": ["running"], "intervals": [True]}),
    ),
    "two requests of an attempt": Race(
        begun,
        Move(ask_agent("plan"), is_runners=True),
        Move(ask_agent("plan", "Another one."), is_runners=True),
        Ending("accepted", "missingAuthority", {"requests": ["pending"], "run": "waiting"}),
        Ending("accepted", "missingAuthority", {"requests": ["pending"], "run": "waiting"}),
    ),
    "request and cancel": Race(
        begun,
        Move(ask_agent("plan"), is_runners=True),
        CANCEL,
        Ending("accepted", "accepted", {"requests": ["cancelled"], "messages": ["step cancelled"]}),
        Ending("accepted", "missingAuthority", {"requests": [], "messages": []}),
    ),
    "two candidates": Race(
        _told,
        Move(submit(REQUEST, "a", name="a")),
        Move(submit(REQUEST, "b", name="b")),
        Ending("accepted", "submissionPending", {"answers": {"a": "validating"}}),
        Ending("accepted", "submissionPending", {"answers": {"b": "validating"}}),
    ),
    "two texts": Race(
        _saying,
        Move(text(request_of("say"), "a", name="a")),
        Move(text(request_of("say"), "b", name="b")),
        Ending("accepted", "alreadyAnswered", {"answers": {"a": "accepted"}, "queue": "queued"}),
        Ending("accepted", "alreadyAnswered", {"answers": {"b": "accepted"}, "queue": "queued"}),
    ),
    "two answers": Race(
        _gated,
        _answer("a", "yes"),
        _answer("b", "no"),
        Ending("accepted", "alreadyAnswered", {"answers": {"a": "accepted"}, "queue": "queued"}),
        Ending("accepted", "alreadyAnswered", {"answers": {"b": "accepted"}, "queue": "queued"}),
    ),
    "answer and cancel": Race(
        _gated,
        _answer("a", "yes"),
        CANCEL,
        Ending("accepted", "accepted", {"answers": {"a": "accepted"}, "requests": ["settled"]}),
        Ending("accepted", "requestCancelled", {"answers": {}, "requests": ["cancelled"]}),
    ),
    "submit and pause": Race(
        _told,
        Move(submit(REQUEST)),
        PAUSE,
        Ending("accepted", "accepted", {"answers": {"s1": "rejected"}, "requests": ["pending"]}),
        Ending("accepted", "runPaused", {"answers": {}, "requests": ["pending"]}),
    ),
    "submit and timeout": Race(
        _told,
        Move(submit(REQUEST)),
        Move(expire(REQUEST)),
        Ending("accepted", "accepted", {"answers": {"s1": "rejected"}, "requests": ["cancelled"]}),
        Ending("accepted", "requestExpired", {"answers": {}, "requests": ["cancelled"]}),
    ),
    "submit and cancel": Race(
        _told,
        Move(submit(REQUEST)),
        CANCEL,
        Ending("accepted", "accepted", {"answers": {"s1": "rejected"}, "requests": ["cancelled"]}),
        Ending("accepted", "requestCancelled", {"answers": {}, "requests": ["cancelled"]}),
    ),
    "acceptance and pause": Race(
        _judging,
        Move(judge(REQUEST)),
        PAUSE,
        Ending(
            "accepted",
            "accepted",
            {"answers": {"s1": "accepted"}, "requests": ["settled"], "queue": "parked"},
        ),
        Ending("accepted", "rejected", {"answers": {"s1": "rejected"}, "requests": ["pending"]}),
    ),
    "acceptance and timeout": Race(
        _judging,
        Move(judge(REQUEST)),
        Move(expire(REQUEST)),
        Ending("accepted", "adopted", {"answers": {"s1": "accepted"}, "requests": ["settled"]}),
        Ending("accepted", "rejected", {"answers": {"s1": "rejected"}, "requests": ["cancelled"]}),
    ),
    "acceptance and cancel": Race(
        _judging,
        Move(judge(REQUEST)),
        CANCEL,
        Ending("accepted", "accepted", {"answers": {"s1": "accepted"}, "run": "cancelled"}),
        Ending("accepted", "rejected", {"answers": {"s1": "rejected"}, "run": "cancelled"}),
    ),
    "two verdicts": Race(
        _judging,
        Move(judge(REQUEST)),
        Move(judge(REQUEST, error="No.")),
        Ending("accepted", "adopted", {"answers": {"s1": "accepted"}, "requests": ["settled"]}),
        Ending("rejected", "rejected", {"answers": {"s1": "rejected"}, "requests": ["pending"]}),
    ),
    "timeout and cancel": Race(
        _told,
        Move(expire(REQUEST)),
        CANCEL,
        Ending("accepted", "accepted", {"run": "cancelled", "requests": ["cancelled"]}),
        Ending("accepted", "adopted", {"run": "cancelled", "requests": ["cancelled"]}),
    ),
    "timeout and aborted turn": Race(
        _told,
        Move(expire(REQUEST)),
        Move(end_turn(STEP, reason="aborted")),
        Ending(
            "accepted", "accepted", {"paused": False, "queue": "queued", "requests": ["cancelled"]}
        ),
        Ending("accepted", "adopted", {"paused": True, "queue": "parked", "requests": ["pending"]}),
    ),
    "two restarts": Race(
        _cancelled,
        Move(RestartRun(RUN, 3)),
        Move(RestartRun(RUN, 3)),
        Ending("accepted", "adopted", {"runs": 2}),
        Ending("accepted", "adopted", {"runs": 2}),
    ),
    "a turn's end twice": Race(
        _told,
        Move(end_turn(STEP)),
        Move(end_turn(STEP)),
        Ending("accepted", "adopted", {"messages": ["step sent", "step pending"]}),
        Ending("accepted", "adopted", {"messages": ["step sent", "step pending"]}),
    ),
    "a turn's two ends": Race(
        _told,
        Move(end_turn(STEP)),
        Move(end_turn(STEP, reason="aborted")),
        Ending("accepted", "turnReused", {"turns": {"turn-1": "completed"}, "paused": False}),
        Ending("accepted", "turnReused", {"turns": {"turn-1": "aborted"}, "paused": True}),
    ),
    "turn end and answer": Race(
        _told,
        Move(end_turn(STEP)),
        Move(submit(REQUEST)),
        Ending("accepted", "accepted", {"messages": ["step sent", "step pending"]}),
        Ending("accepted", "accepted", {"messages": ["step sent"]}),
    ),
    "turn end and end of the run": Race(
        _told,
        Move(end_turn(STEP)),
        CANCEL,
        Ending("accepted", "accepted", {"turns": {"turn-1": "completed"}, "run": "cancelled"}),
        Ending("accepted", "adopted", {"turns": {"turn-1": "lost"}, "run": "cancelled"}),
    ),
    "turn end and its loss": Race(
        _told,
        Move(end_turn(STEP)),
        Move(report_branch(None)),
        Ending("accepted", "adopted", {"turns": {"turn-1": "completed"}}),
        Ending("accepted", "adopted", {"turns": {"turn-1": "lost"}, "messages": ["step sent"]}),
    ),
    "branch evidence and cancel": Race(
        asked,
        Move(report_branch(STEP, "entry-1")),
        CANCEL,
        Ending("accepted", "accepted", {"messages": ["step sent"]}),
        Ending("accepted", "accepted", {"messages": ["step sent"]}),
    ),
    "branch evidence and pause": Race(
        asked,
        Move(report_branch(STEP, "entry-1")),
        PAUSE,
        Ending("accepted", "accepted", {"messages": ["step sent"]}),
        Ending("accepted", "accepted", {"messages": ["step sent"]}),
    ),
    "turn start and pause": Race(
        _sent,
        Move(start_turn(STEP)),
        PAUSE,
        Ending("accepted", "accepted", {"turns": {"turn-1": "started"}, "intervals": [False] * 2}),
        Ending("accepted", "adopted", {"turns": {}, "intervals": [False]}),
    ),
    "turn start and cancel": Race(
        _sent,
        Move(start_turn(STEP)),
        CANCEL,
        Ending("accepted", "accepted", {"turns": {"turn-1": "lost"}}),
        Ending("accepted", "adopted", {"turns": {}}),
    ),
    "two turns of a message": Race(
        _sent,
        Move(start_turn(STEP, "turn-a")),
        Move(start_turn(STEP, "turn-b")),
        Ending("accepted", "turnOpen", {"turns": {"turn-a": "started"}}),
        Ending("accepted", "turnOpen", {"turns": {"turn-b": "started"}}),
    ),
    "one turn twice": Race(
        _sent,
        Move(start_turn(STEP)),
        Move(start_turn(STEP)),
        Ending("accepted", "adopted", {"turns": {"turn-1": "started"}}),
        Ending("accepted", "adopted", {"turns": {"turn-1": "started"}}),
    ),
    "an interval opened twice": Race(
        _told,
        Move(ResumeClock(RUN, "turn-1")),
        Move(ResumeClock(RUN, "turn-1")),
        Ending("adopted", "adopted", {"intervals": [False, True]}),
        Ending("adopted", "adopted", {"intervals": [False, True]}),
    ),
    "a settlement twice": Race(
        _cancelled,
        Move(SettleQueue(RUN)),
        Move(SettleQueue(RUN)),
        Ending("accepted", "accepted", {"queue": "cancelled"}),
        Ending("accepted", "accepted", {"queue": "cancelled"}),
    ),
    "two reservations": Race(
        _acting,
        Move(reserve("deploy", "manual"), is_runners=True),
        Move(reserve("deploy", "manual"), is_runners=True),
        Ending("accepted", "adopted", {"effects": ["pending"]}),
        Ending("accepted", "adopted", {"effects": ["pending"]}),
    ),
    "two tries": Race(
        _reserved,
        Move(try_effect(_EFFECT), is_runners=True),
        Move(try_effect(_EFFECT), is_runners=True),
        Ending("accepted", "effectNotPending", {"effects": ["applying"], "tries": [None]}),
        Ending("accepted", "effectNotPending", {"effects": ["applying"], "tries": [None]}),
    ),
    "two accounts of a try": Race(
        _trying,
        Move(settle(_EFFECT), is_runners=True),
        Move(settle(_EFFECT, "rejected"), is_runners=True),
        Ending("accepted", "attemptMismatch", {"effects": ["applied"]}),
        Ending("accepted", "attemptMismatch", {"effects": ["rejected"]}),
    ),
    "a try and cancel": Race(
        _reserved,
        Move(try_effect(_EFFECT), is_runners=True),
        CANCEL,
        Ending("accepted", "accepted", {"effects": ["ambiguous"], "tries": ["ambiguous"]}),
        Ending("accepted", "missingAuthority", {"effects": ["cancelled"], "tries": []}),
    ),
    "an account of a try and cancel": Race(
        _trying,
        Move(settle(_EFFECT), is_runners=True),
        CANCEL,
        Ending("accepted", "accepted", {"effects": ["applied"], "run": "cancelled"}),
        Ending("accepted", "missingAuthority", {"effects": ["ambiguous"], "run": "cancelled"}),
    ),
    "a try and pause": Race(
        _reserved,
        Move(try_effect(_EFFECT), is_runners=True),
        PAUSE,
        Ending("accepted", "accepted", {"effects": ["applying"], "queue": "running"}),
        Ending("accepted", "missingAuthority", {"effects": ["pending"], "queue": "parked"}),
    ),
}


@pytest.mark.parametrize("is_back", [False, True], ids=["forth", "back"])
@pytest.mark.parametrize("name", RACES)
def test_one_wins_and_the_other_is_told(bench: Harness, name: str, *, is_back: bool) -> None:
    """Each order has its winner, its loser, and exactly one state that is left."""
    race = RACES[name]
    permit = race.scene(bench)
    wanted = race.back if is_back else race.forth
    moves = (race.other, race.one) if is_back else (race.one, race.other)
    assert raced(bench, permit, moves) == (wanted.winner, wanted.loser)
    left = standing(bench)
    assert {each: left[each] for each in wanted.standing} == wanted.standing
