"""What a session's model hands in for its step: kept, judged, and one of them wins."""

from __future__ import annotations

from typing import Final

import pytest

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Outcome
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import ReleaseClaim
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.kernel.order import Answer
from tests.kernel.conversing import (
    BUDGET_MS,
    REQUEST,
    RUN,
    STEP,
    asked,
    reminder,
    unanswered,
    working,
)
from tests.kernel.failing import digests
from tests.kernel.harness import (
    SESSION,
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
    request_of,
    step_message,
    submit,
    text,
)
from tests.kernel.racing import standing, told
from tests.kernel.workflows import agent, speaker

_GATE: Final[dict[str, canonical.Json]] = {"type": "checkpoint", "timeoutMs": 0}
PLANNED: Final = definition({"plan": agent()})
SPEECH: Final = definition({"say": speaker(8)})
GATED: Final = definition({"gate": _GATE})
SAY: Final = request_of("say")


def planned(bench: Harness) -> None:
    """Bring a run of one step to where its session's model works on it."""
    permit = bench.launch(workflow=PLANNED, session=SESSION)
    bench.do(begin("plan", node_type="agent"), permit=permit)
    bench.do(ask_agent("plan"), permit=permit)
    working(bench)


def speaking(bench: Harness) -> None:
    """Bring a run to where its session's model shall say something."""
    permit = bench.launch(workflow=SPEECH, session=SESSION)
    bench.do(begin("say", node_type="agent"), ask_text("say", 8), permit=permit)
    working(bench, step_message("say"))


def receipt(answer: Answer) -> dict[str, canonical.Json]:
    """Return what whoever submitted is told."""
    found = canonical.decode(answer.receipt or b"{}")
    assert isinstance(found, dict)
    return found


def unchanged(bench: Harness, answer: Answer, before: dict[str, str]) -> str:
    """Hold that a refused command left nothing; return its code."""
    assert digests(bench.store) == before
    return told(answer)


def test_an_accepted_candidate_is_the_steps_output(bench: Harness) -> None:
    """It is kept first, judged next; the run is queued, and a runner takes exactly this value."""
    planned(bench)
    kept = bench.do(submit(REQUEST, {"raw": 1}))
    assert receipt(kept) == {"requestId": REQUEST, "submissionId": "submission-s1"}
    left = standing(bench)
    assert (left["requests"], left["answers"], left["queue"]) == (
        ["pending"],
        {"s1": "validating"},
        "parked",
    )
    bench.clock.advance_ms(70)
    judged = bench.do(judge(REQUEST, {"plan": "good"}, elapsed_ms=70))
    assert receipt(judged) == receipt(kept)
    left = standing(bench)
    assert (left["requests"], left["answers"], left["queue"]) == (
        ["settled"],
        {"s1": "accepted"},
        "queued",
    )
    assert [row[5] for row in bench.dump("attempt_active_intervals")] == [0, 70]
    bench.do(end_turn(STEP, elapsed_ms=90))
    assert standing(bench)["messages"] == ["step sent"]
    permit = bench.relaunch()
    assert bench.answer(end("plan", {"raw": 1}), permit=permit).code == "outputMismatch"
    bench.do(end("plan", {"plan": "good"}), finish({"plan": "good"}), permit=permit)


def test_a_refused_candidate_leaves_its_request_open(bench: Harness) -> None:
    """The model is told why, in one line, and may hand in another one."""
    planned(bench)
    bench.do(submit(REQUEST, {"raw": 1}))
    refused = bench.answer(judge(REQUEST, error="No plan in it."))
    assert refused.outcome is Outcome.REJECTED
    assert receipt(refused)["receipt"] == {"error": "No plan in it."}
    left = standing(bench)
    assert (left["requests"], left["queue"], left["intervals"]) == (
        ["pending"],
        "parked",
        [False, True],
    )
    bench.do(submit(REQUEST, {"raw": 2}, name="s2"), judge(REQUEST, {"plan": 2}, name="s2"))
    assert standing(bench)["answers"] == {"s1": "rejected", "s2": "accepted"}


def test_case_01_an_answer_to_an_agents_request_changes_nothing(bench: Harness) -> None:
    """A checkpoint's answer is refused by its kind, and the later correct submission works."""
    planned(bench)
    before = digests(bench.store)
    answer = AnswerCheckpoint(RUN, REQUEST, 1, "s", "k", Blob.json("yes"))
    refused = bench.answer(answer)
    assert refused.outcome is Outcome.REJECTED
    assert unchanged(bench, refused, before) == "requestKind"
    bench.do(submit(REQUEST), judge(REQUEST))
    assert standing(bench)["requests"] == ["settled"]


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (submit("request-of-nobody"), "requestMissing"),
        (submit(REQUEST, run_id="run-2"), "requestMissing"),
        (submit(REQUEST, session="session-2"), "requestTarget"),
        (submit(REQUEST, revision=2), "staleRevision"),
        (text(REQUEST), "requestKind"),
        (text(REQUEST, session="session-2"), "requestKind"),
    ],
)
def test_case_02_only_the_named_request_is_answered(
    bench: Harness, wrong: object, code: str
) -> None:
    """Stale, foreign or of another kind: refused; nobody looks for a request that would do."""
    bench.do(bench.start("run-2"))
    planned(bench)
    before = digests(bench.store)
    assert unchanged(bench, bench.answer(wrong), before) == code  # type: ignore[arg-type] # commands
    bench.do(submit(REQUEST))


def test_case_02_the_older_request_of_a_resumed_step_is_stale(bench: Harness) -> None:
    """What was read before a pause answers nothing after it."""
    planned(bench)
    bench.do(PauseRun(RUN))
    bench.do(ResumeRun(RUN))
    before = digests(bench.store)
    assert unchanged(bench, bench.answer(submit(REQUEST)), before) == "staleRevision"
    bench.do(submit(REQUEST, revision=2))


def test_case_13_a_late_submission_never_succeeds(bench: Harness) -> None:
    """It is told that its time is over, before and after a runner recorded the outcome."""
    asked(bench)
    working(bench)
    bench.do(submit(REQUEST))
    bench.do(expire(REQUEST))
    late = bench.answer(judge(REQUEST))
    assert late.outcome is Outcome.REJECTED
    assert receipt(late)["receipt"] == {"error": "The question closed meanwhile."}
    assert told(bench.answer(submit(REQUEST, name="s2"))) == "requestExpired"
    permit = bench.relaunch()
    bench.do(unanswered(), permit=permit)
    assert told(bench.answer(submit(REQUEST, name="s3"))) == "requestExpired"
    assert standing(bench)["answers"] == {"s1": "rejected"}
    assert [row[6] for row in bench.dump("node_attempts")] == ["timed_out"]


def test_case_13_only_a_request_whose_time_ran_out_is_called_expired(bench: Harness) -> None:
    """One that closed for another reason is cancelled, even in a run that another one left."""
    asked(bench)
    bench.do(CancelRun(RUN))
    assert told(bench.answer(submit(REQUEST))) == "requestCancelled"


def test_a_time_that_is_not_over_closes_nothing(bench: Harness) -> None:
    """The active time of closed and open intervals counts, and no time twice."""
    asked(bench)
    working(bench)
    assert told(bench.answer(expire(REQUEST, BUDGET_MS - 1))) == "adopted"
    bench.do(end_turn(STEP, elapsed_ms=BUDGET_MS - 5))
    assert told(bench.answer(expire(REQUEST, BUDGET_MS))) == "adopted"
    working(bench, reminder("turn-1"), "turn-2")
    assert told(bench.answer(expire(REQUEST, 4))) == "adopted"
    assert standing(bench)["requests"] == ["pending"]
    assert told(bench.answer(expire(REQUEST, 5))) == "accepted"
    assert [row[5] for row in bench.dump("attempt_active_intervals")] == [0, BUDGET_MS - 5, 5]


def test_case_14_a_saved_request_is_restored_not_completed(bench: Harness) -> None:
    """A crash after the question keeps it open; its answer is consumed exactly once."""
    permit = bench.launch(workflow=GATED)
    bench.do(begin("gate", node_type="checkpoint"), ask("gate"), permit=permit)
    bench.store.crash()
    bench.reopen()
    assert told(bench.answer(ReleaseClaim(RUN))) != "accepted"
    left = standing(bench)
    assert (left["run"], left["requests"], left["attempts"]) == (
        "waiting",
        ["pending"],
        ["waiting"],
    )
    bench.do(AnswerCheckpoint(RUN, request_of("gate"), 1, "s", "k", Blob.json("yes")))
    permit = bench.relaunch()
    bench.do(end("gate", "yes"), permit=permit)
    again = bench.answer(end("gate", "yes"), permit=permit)
    assert told(again) == "attemptMismatch"
    consumed = [row[12] for row in bench.dump("interactive_requests")]
    assert consumed == [bench.clock.now_ms()]
    bench.do(finish("yes"), permit=permit)
    assert len(bench.dump("run_steps")) == 1


def test_case_23_a_repeated_submission_is_one(bench: Harness) -> None:
    """The same key finds the stored candidate at every stage; another value is a conflict."""
    planned(bench)
    bench.do(submit(REQUEST, 1))
    again = bench.answer(submit(REQUEST, 1))
    assert (again.outcome, len(bench.dump("interactive_submissions"))) == (Outcome.ADOPTED, 1)
    assert told(bench.answer(submit(REQUEST, 2))) == "submissionReused"
    bench.answer(judge(REQUEST, error="No."))
    repeated = bench.answer(submit(REQUEST, 1))
    assert repeated.outcome is Outcome.REJECTED
    assert receipt(repeated)["receipt"] == {"error": "No."}
    bench.do(submit(REQUEST, 3, name="s3"), judge(REQUEST, 3, name="s3"))
    assert told(bench.answer(submit(REQUEST, 3, name="s3"))) == "adopted"
    assert told(bench.answer(judge(REQUEST, 4, name="s3"))) == "adopted"
    bench.do(CancelRun(RUN))
    assert told(bench.answer(submit(REQUEST, 3, name="s3"))) == "adopted"


def test_a_paused_run_adopts_what_it_has_and_takes_nothing_new(bench: Harness) -> None:
    """An exact repeat of a stored submission is answered; everything else waits for a resume."""
    planned(bench)
    bench.do(submit(REQUEST))
    bench.do(PauseRun(RUN))
    repeated = bench.answer(submit(REQUEST))
    assert repeated.outcome is Outcome.REJECTED
    assert receipt(repeated)["receipt"] == {"error": "The run was paused."}
    assert told(bench.answer(submit(REQUEST, name="s2"))) == "runPaused"


def test_an_answered_step_takes_nothing_more(bench: Harness) -> None:
    """Neither a candidate nor a runner's own idea of the answer."""
    planned(bench)
    bench.do(submit(REQUEST), judge(REQUEST))
    assert told(bench.answer(submit(REQUEST, name="s2"))) == "alreadyAnswered"
    assert told(bench.answer(judge(REQUEST, name="s2"))) == "submissionMissing"


@pytest.mark.parametrize("said", ["", " \n", "123456789"])
def test_text_that_will_not_do_is_refused_and_kept(bench: Harness, said: str) -> None:
    """Empty or too long: the step stays open, and shorter text is its output as it stands."""
    speaking(bench)
    refused = bench.answer(text(SAY, said))
    assert refused.outcome is Outcome.REJECTED
    document = receipt(refused)["receipt"]
    assert isinstance(document, dict)
    assert list(document) == ["error"]
    left = standing(bench)
    assert (left["requests"], left["answers"]) == (["pending"], {"s1": "rejected"})
    good = bench.do(text(SAY, " 12345 \n", name="s2"))
    account = receipt(good)["receipt"]
    assert isinstance(account, dict)
    assert set(account) == {"textDigest", "sessionEntryId", "adopted", "maxChars"}
    permit = bench.relaunch()
    bench.do(end("say", " 12345 \n"), finish(" 12345 \n"), permit=permit)


def test_a_step_without_a_session_is_answered_by_its_runner(bench: Harness) -> None:
    """No message exists, no session is asked, and nobody else's name is needed."""
    permit = bench.launch(workflow=PLANNED)
    bench.do(begin("plan", node_type="agent"), ask_agent("plan"), permit=permit)
    assert bench.dump("workflow_messages") == []
    bench.do(submit(REQUEST, session=None), judge(REQUEST))
    bench.do(end("plan", "done"), finish("done"), permit=bench.relaunch())


def test_a_submissions_name_is_used_once(bench: Harness) -> None:
    """The ID of another step's submission is not taken a second time."""
    asked(bench)
    working(bench)
    bench.do(submit(REQUEST), judge(REQUEST))
    bench.do(end("plan", "done"), begin("told", node_type="notify"), permit=bench.relaunch())
    key = ids.attempt_id(RUN, "told", 1)
    assert key in {row[0] for row in bench.dump("node_attempts")}
    bench.do(CancelRun(RUN))
    planned_again = bench.launch("run-2", PLANNED, SESSION)
    first = begin("plan", run_id="run-2", node_type="agent")
    bench.do(first, ask_agent("plan", run_id="run-2"), permit=planned_again)
    again = submit(request_of("plan", run_id="run-2"), run_id="run-2")
    assert told(bench.answer(again)) == "submissionReused"
