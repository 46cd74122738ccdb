"""Decisions that only a person makes: one end each, whoever comes first, and nothing forged."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from itertools import permutations
from typing import Final, TypeAlias

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json, decode
from pi_workflows.base.errors import Outcome
from pi_workflows.base.limits import DECISION_CANDIDATES_MAX
from pi_workflows.domain.attempt.boundary import FinishAttempt
from pi_workflows.domain.attempt.question import WaitForInput
from pi_workflows.domain.decision.resolution import AnswerDecision
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.kernel.order import Answer
from tests.kernel.deciding import (
    DEFAULT,
    EXPIRY,
    MODEL,
    PERSON,
    PLAN,
    POLICY,
    RUN,
    asked,
    asks,
    candidates,
    closing,
    decided_by,
    decision_of,
    gated,
    given,
    question,
    receipt,
    request_of,
    resolution,
    row_of,
)
from tests.kernel.harness import Harness, begin, end, finish, reserve, settle, try_effect

CONTROL: Final = Actor("control", "cli-1")
MINUTE_MS: Final = 60_000
Move: TypeAlias = Callable[[Harness], Answer]


def queue_of(bench: Harness) -> object:
    """Return where the run stands in the queue."""
    row = row_of(bench, "run_queue", RUN)
    assert row is not None
    return row[1]


def request_status(bench: Harness, number: int = 1) -> object:
    """Return where the question stands."""
    row = row_of(bench, "interactive_requests", request_of(number))
    assert row is not None
    return row[7]


# --- asking --------------------------------------------------------------------------------------


def test_the_request_names_all_that_is_asked_by_digest(bench: Harness) -> None:
    """Subject, presentation, choices and default are values of their own; one digest covers all."""
    asked(bench, DEFAULT)
    (row,) = bench.dump("human_decisions")
    with bench.store.snapshot() as read:
        assert isinstance(row[13], bytes)
        request = read.blob(row[13])
        document = decode(request)
        assert isinstance(document, dict)
        subject = read.blob(bytes.fromhex(str(document["subjectDigest"])))
    assert row[9] == row[13] == hashlib.sha256(request).digest()
    assert decode(subject) == PLAN
    assert document["decisionId"] == row[0] == decision_of()
    assert document["deadlineAt"] == row[11] == bench.clock.now_ms() + 10 * MINUTE_MS
    assert document["defaultResponseDigest"] == Blob.json({"choice": "stop"}).hex
    assert document["revision"] == row[10] == 1


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"audience": "anybody"}, "decisionMismatch"),
        ({"expiresMs": 1_000}, "decisionMismatch"),
        ({"choices": [{"id": "go", "label": "Go"}]}, "decisionMismatch"),
        ({"title": ""}, "decisionInvalid"),
        ({"choices": []}, "decisionInvalid"),
        ({"presentation": {"summary": "x" * 16_001}}, "decisionInvalid"),
        ({"presentation": {"summary": "\U0001f680" * 8_001}}, "decisionInvalid"),
        ({"presentation": {"summary": "x", "blocks": [{"type": "html"}]}}, "decisionInvalid"),
        ({"timeoutMs": 5, "expiresMs": 5, "defaultResponse": {"choice": "go"}}, "decisionInvalid"),
    ],
)
def test_a_question_that_no_definition_declares_is_refused(
    bench: Harness, changed: dict[str, Json], code: str
) -> None:
    """What a runner asks is what was declared, within what a person can be shown whole."""
    permit = bench.launch(workflow=gated())
    bench.do(begin("gate", node_type="checkpoint"), permit=permit)
    contract = decode(question().content)
    assert isinstance(contract, dict)
    member = contract["decision"]
    assert isinstance(member, dict)
    asking = Blob.json({**contract, "decision": {**member, **changed}})
    wait = WaitForInput(RUN, begin("gate").attempt_id, "decision", asking)
    answer = bench.answer(wait, permit=permit)
    assert (answer.outcome, answer.code) == (Outcome.REJECTED, code)
    assert bench.dump("human_decisions") == []


# --- one end -------------------------------------------------------------------------------------


def test_a_person_decides(bench: Harness) -> None:
    """One command: the answer is accepted, its question settled, the decision made, the run due."""
    asked(bench)
    answer = bench.do(given("replan", "smaller"), actor=PERSON)
    assert [event.fact.type for event in answer.events] == [
        "request.submitted",
        "decision.resolved",
    ]
    assert resolution(bench) == ("accepted", "human", "operator:key-1")
    assert candidates(bench) == [("submission-s1", "human", "won")]
    assert (request_status(bench), queue_of(bench)) == ("settled", "queued")
    told = receipt(answer)
    assert isinstance(told, dict)
    decision = told["decision"]
    assert isinstance(decision, dict)
    assert decision["response"] == {"choice": "replan", "input": {"how": "smaller"}}
    assert "operator:key-1" not in str(told)
    permit = bench.relaunch()
    output: Json = {"choice": "replan", "input": {"how": "smaller"}}
    bench.do(end("gate", output), permit=permit)
    bench.do(finish(output), permit=permit)


@pytest.mark.parametrize(
    ("response", "told"),
    [
        ({"choice": "no"}, "choice"),
        ({"choice": "go", "input": {"how": "x"}}, "input"),
        ({"choice": "replan"}, "input"),
        ({"choice": "replan", "input": {"how": ""}}, "input.how"),
        ({"choice": "replan", "input": {"how": "x" * 41}}, "input.how"),
        ({"choice": "replan", "input": {"why": "x"}}, "input"),
        ({"choice": "go", "actor": "me"}, "actor"),
        ("go", ""),
    ],
)
def test_a_response_that_fits_no_choice_may_be_corrected(
    bench: Harness, response: Json, told: str
) -> None:
    """It is refused with what is wrong, and the same person may answer under the same name."""
    asked(bench)
    wrong = AnswerDecision(RUN, request_of(), 1, "submission-s1", "key-s1", Blob.json(response))
    answer = bench.answer(wrong, actor=PERSON)
    assert (answer.outcome, answer.code) == (Outcome.REJECTED, "answerInvalid")
    assert told in (answer.error or "")
    assert candidates(bench) == []
    bench.do(given(), actor=PERSON)


def test_what_comes_second_adopts_the_winner_or_learns_of_it(bench: Harness) -> None:
    """Every answer is kept with what became of it."""
    asked(bench)
    bench.do(given("go", name="a"), actor=PERSON)
    assert bench.answer(given("go", name="b"), actor=PERSON).outcome is Outcome.ADOPTED
    lost = bench.answer(given("stop", name="c"), actor=PERSON)
    assert (lost.outcome, lost.code) == (Outcome.CONFLICT, "alreadyDecided")
    told = receipt(lost)
    assert isinstance(told, dict)
    winner = told["decision"]
    assert isinstance(winner, dict)
    assert (winner["response"], winner["provenance"]) == ({"choice": "go"}, "human")
    assert bench.answer(given("go", name="a"), actor=PERSON).outcome is Outcome.ADOPTED
    again = bench.answer(given("stop", name="c"), actor=PERSON)
    assert (again.outcome, again.code) == (Outcome.CONFLICT, "alreadyDecided")
    reused = bench.answer(given("replan", "x", name="c"), actor=PERSON)
    assert (reused.outcome, reused.code) == (Outcome.CONFLICT, "submissionReused")
    assert candidates(bench) == [
        ("submission-a", "human", "won"),
        ("submission-b", "human", "adopted"),
        ("submission-c", "human", "already_resolved"),
    ]


def _answers(bench: Harness) -> Answer:
    return bench.answer(given("go"), actor=PERSON)


def _times_out(bench: Harness) -> Answer:
    bench.clock.advance_ms(10 * MINUTE_MS)
    return bench.answer(closing(), actor=POLICY)


def _cancels(bench: Harness) -> Answer:
    return bench.answer(CancelRun(RUN), actor=CONTROL)


_MOVES: Final[dict[str, Move]] = {"human": _answers, "policy": _times_out, "cancel": _cancels}
_WINNERS: Final = {
    "human": ("accepted", "human", "operator:key-1"),
    "cancel": ("cancelled", "explicit_cancel", None),
}


@pytest.mark.parametrize("has_default", [True, False])
@pytest.mark.parametrize("order", list(permutations(_MOVES)))
def test_case_19_human_timeout_and_cancel_race(
    bench: Harness, order: tuple[str, ...], *, has_default: bool
) -> None:
    """One winner in every order; a deadline with a default never becomes an expiry."""
    asked(bench, DEFAULT if has_default else EXPIRY)
    for name in order:
        _MOVES[name](bench)
    by_policy = (
        ("accepted", "timeout_policy", None)
        if has_default
        else ("cancelled", "expired_no_default", None)
    )
    assert resolution(bench) == {**_WINNERS, "policy": by_policy}[order[0]]
    assert len(bench.dump("human_decision_resolutions")) == 1
    assert [fate for _, _, fate in candidates(bench)].count("won") == (
        order[0] == "human" or (order[0] == "policy" and has_default)
    )
    assert row_of(bench, "runs", RUN)[14] == "cancelled"  # type: ignore[index] # the run is there


def test_nobody_wins_as_a_person_after_the_deadline(bench: Harness) -> None:
    """Not even before the server has noticed that it is over; a moment earlier is in time."""
    asked(bench, DEFAULT)
    bench.clock.advance_ms(10 * MINUTE_MS - 1)
    early = bench.answer(closing(), actor=POLICY)
    assert (early.outcome, early.code) == (Outcome.REJECTED, "decisionNotDue")
    bench.clock.advance_ms(1)
    late = bench.answer(given("go"), actor=PERSON)
    assert (late.outcome, late.code) == (Outcome.CONFLICT, "decisionExpired")
    assert resolution(bench) is None
    bench.do(closing(), actor=POLICY)
    assert resolution(bench) == ("accepted", "timeout_policy", None)
    assert ("submission-s1", "human", "rejected") in candidates(bench)
    assert bench.do(closing(), actor=POLICY).outcome is Outcome.ADOPTED
    permit = bench.relaunch()
    bench.do(end("gate", {"choice": "stop"}), permit=permit)


def test_the_last_moment_is_a_persons(bench: Harness) -> None:
    """An answer a millisecond before the deadline decides, and the deadline changes nothing."""
    asked(bench, DEFAULT)
    bench.clock.advance_ms(10 * MINUTE_MS - 1)
    bench.do(given("go"), actor=PERSON)
    bench.clock.advance_ms(1)
    assert bench.do(closing(), actor=POLICY).outcome is Outcome.ADOPTED
    assert resolution(bench) == ("accepted", "human", "operator:key-1")


def test_a_decision_expires_and_its_node_times_out(bench: Harness) -> None:
    """Without a default nobody decides: the question closes, and a runner records it."""
    asked(bench, EXPIRY)
    bench.clock.advance_ms(10 * MINUTE_MS)
    answer = bench.do(closing(), actor=POLICY)
    assert [event.fact.type for event in answer.events] == [
        "request.cancelled",
        "decision.resolved",
    ]
    assert resolution(bench) == ("cancelled", "expired_no_default", None)
    assert (request_status(bench), queue_of(bench)) == ("cancelled", "queued")
    late = bench.answer(given("go"), actor=PERSON)
    assert (late.outcome, late.code) == (Outcome.CONFLICT, "alreadyDecided")
    permit = bench.relaunch()
    assert bench.answer(end("gate", {"choice": "go"}), permit=permit).error is not None
    why = Failure("decisionExpired", "nobody decided in time: Deploy v1?")
    attempt_id = begin("gate").attempt_id
    bench.do(FinishAttempt(RUN, attempt_id, "timed_out", failure=why), permit=permit)


# --- who may not ---------------------------------------------------------------------------------


@pytest.mark.parametrize("actor", [CONTROL, MODEL])
def test_what_no_person_was_proved_behind_is_refused_and_kept(bench: Harness, actor: Actor) -> None:
    """A model's answer, whichever way it comes, decides nothing and shows afterwards."""
    asked(bench)
    ordinary = AnswerCheckpoint(RUN, request_of(), 1, "submission-x", "k", Blob.json("go"))
    for command in (given("go"), ordinary):
        answer = bench.answer(command, actor=actor)
        assert (answer.outcome, answer.code) == (Outcome.REJECTED, "decisionProtected")
    assert resolution(bench) is None
    assert (request_status(bench), queue_of(bench)) == ("pending", "parked")
    assert candidates(bench) == [
        ("submission-s1", "control", "rejected"),
        ("submission-x", "control", "rejected"),
    ]
    again = bench.answer(ordinary, actor=actor)
    assert (again.outcome, again.code) == (Outcome.REJECTED, "decisionProtected")
    bench.do(given("go", name="s2"), actor=PERSON)


def test_a_refusal_that_is_kept_is_remembered_as_one(bench: Harness) -> None:
    """Asking again under the same key gives the same refusal, and keeps nothing more."""
    asked(bench)
    first = bench.answer(given("go"), actor=CONTROL, identity=bench.client("key"))
    before = len(bench.dump("events"))
    again = bench.answer(given("go"), actor=CONTROL, identity=bench.client("key"))
    assert (again.outcome, again.error, again.receipt) == (
        Outcome.REJECTED,
        first.error,
        first.receipt,
    )
    assert len(bench.dump("events")) == before


def test_answers_that_are_refused_are_kept_up_to_a_limit(
    bench: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever tries for ever fills no database."""
    assert DECISION_CANDIDATES_MAX >= 100
    monkeypatch.setattr("pi_workflows.domain.decision.state.DECISION_CANDIDATES_MAX", 3)
    asked(bench)
    for number in range(5):
        refused = bench.answer(given("go", name=f"m{number}"), actor=MODEL)
        assert refused.code == "decisionProtected"
    assert len(candidates(bench)) == 3
    bench.do(given("go"), actor=PERSON)
    assert resolution(bench) == ("accepted", "human", "operator:key-1")


def test_case_20_a_forged_decision_is_held_to_the_stored_one(bench: Harness) -> None:
    """An answer to another revision, and an output that is no resolution, are refused."""
    asked(bench)
    other = bench.answer(given("go", revision=2), actor=PERSON)
    assert (other.outcome, other.code) == (Outcome.CONFLICT, "staleRevision")
    assert candidates(bench) == [("submission-s1", "human", "rejected")]
    bench.do(given("go", name="s2"), actor=PERSON)
    permit = bench.relaunch()
    outputs: list[Json] = [{"choice": "stop"}, {"choice": "go", "by": "operator"}, "go"]
    for output in outputs:
        forged = bench.answer(end("gate", output), permit=permit)
        assert (forged.outcome, forged.code) == (Outcome.REJECTED, "outputMismatch")
    bench.do(end("gate", {"choice": "go"}), permit=permit)


def test_case_20_nobody_completes_a_decision_that_is_not_made(bench: Harness) -> None:
    """A runner that says that a person accepted is refused while no person did."""
    permit = bench.launch(workflow=gated())
    bench.do(begin("gate", node_type="checkpoint"), permit=permit)
    forged = FinishAttempt(RUN, begin("gate").attempt_id, "ok", output=Blob.json({"choice": "go"}))
    answer = bench.answer(forged, permit=permit)
    assert (answer.outcome, answer.code) == (Outcome.REJECTED, "answerMissing")


# --- pauses --------------------------------------------------------------------------------------


def test_case_22_a_pause_leaves_a_decision_as_it_is(bench: Harness) -> None:
    """No new revision and no second decision; an answer to what was read before still counts."""
    asked(bench)
    bench.do(PauseRun(RUN))
    paused = bench.answer(given("go"), actor=PERSON)
    assert (paused.outcome, paused.code) == (Outcome.CONFLICT, "runPaused")
    assert candidates(bench) == []
    bench.do(ResumeRun(RUN))
    row = row_of(bench, "interactive_requests", request_of())
    assert row is not None
    assert row[6] == 1
    assert len(bench.dump("human_decisions")) == 1
    bench.do(given("go"), actor=PERSON)
    assert resolution(bench) == ("accepted", "human", "operator:key-1")


@pytest.mark.parametrize("more", [DEFAULT, EXPIRY])
def test_a_deadline_fires_while_paused_and_the_run_waits(
    bench: Harness, more: dict[str, Json]
) -> None:
    """The decision closes in time; what follows of it waits for the resume."""
    asked(bench, more)
    bench.do(PauseRun(RUN))
    bench.clock.advance_ms(10 * MINUTE_MS)
    bench.do(closing(), actor=POLICY)
    assert resolution(bench) is not None
    assert queue_of(bench) == "parked"
    bench.do(ResumeRun(RUN))
    assert queue_of(bench) == "queued"


def messages(bench: Harness) -> list[tuple[object, object, object]]:
    """Return kind, source and status of each message."""
    return [(row[3], row[4], row[7]) for row in bench.dump("workflow_messages")]


@pytest.mark.parametrize("ending", ["decided", "expired", "cancelled"])
def test_case_22_a_session_is_told_once_of_a_decision(bench: Harness, ending: str) -> None:
    """One message, whatever pauses there are; it goes when there is nothing to decide any more."""
    bench.do(bench.start(workflow=gated(EXPIRY), session="session-1"))
    permit = bench.relaunch()
    bench.do(begin("gate", node_type="checkpoint"), permit=permit)
    bench.do(asks(terms=EXPIRY), permit=permit)
    bench.do(PauseRun(RUN))
    bench.do(ResumeRun(RUN))
    assert messages(bench) == [("decision", decision_of(), "pending")]
    (content_hash,) = [row[5] for row in bench.dump("workflow_messages")]
    assert isinstance(content_hash, bytes)
    with bench.store.snapshot() as read:
        text = read.blob(content_hash).decode()
    assert "Version 1 goes out." in text
    assert "go: Deploy it" in text
    assert "command" not in text
    if ending == "decided":
        bench.do(given("go"), actor=PERSON)
    elif ending == "expired":
        bench.clock.advance_ms(10 * MINUTE_MS)
        bench.do(closing(), actor=POLICY)
    else:
        bench.do(CancelRun(RUN))
    assert ("decision", decision_of(), "cancelled") in messages(bench)


# --- approvals -----------------------------------------------------------------------------------


def _approved(bench: Harness, subject: Json = PLAN) -> None:
    """Bring a run to where its action was approved."""
    permit = bench.launch(workflow=decided_by())
    bench.do(begin("plan"), end("plan", PLAN), permit=permit)
    bench.do(begin("gate", node_type="checkpoint"), permit=permit)
    bench.do(asks(subject), permit=permit)
    bench.do(given("go"), actor=PERSON)


def test_an_action_runs_exactly_as_it_was_approved(bench: Harness) -> None:
    """Its request is the subject that the person saw."""
    _approved(bench)
    permit = bench.relaunch()
    bench.do(end("gate", {"choice": "go"}), begin("deploy", node_type="action"), permit=permit)
    values = bench.do(reserve("deploy", request=PLAN), permit=permit).values
    assert isinstance(values, dict)
    effect_id = str(values["effectId"])
    bench.do(try_effect(effect_id), permit=permit)
    bench.do(settle(effect_id), permit=permit)
    bench.do(end("deploy", {"id": 7}), begin("done"), permit=permit)


def test_an_action_that_changed_never_runs_and_is_asked_anew(bench: Harness) -> None:
    """The approval of another request does not hold: the decision gets a new visit, no retry."""
    _approved(bench)
    permit = bench.relaunch()
    bench.do(end("gate", {"choice": "go"}), begin("deploy", node_type="action"), permit=permit)
    changed: Json = {"command": ["deploy", "v2"]}
    stale = bench.answer(reserve("deploy", request=changed), permit=permit)
    assert (stale.outcome, stale.code) == (Outcome.REJECTED, "approvalStale")
    assert bench.dump("effects") == []
    why = Failure("approvalStale", "another request")
    failed = FinishAttempt(RUN, begin("deploy").attempt_id, "failed", failure=why)
    bench.do(failed, permit=permit)
    again = bench.answer(begin("deploy", number=2, node_type="action"), permit=permit)
    assert again.code == "routeMismatch"
    bench.do(begin("gate", visit=2, number=2, node_type="checkpoint"), permit=permit)
    bench.do(asks(changed, number=2), permit=permit)
    bench.do(given("go", name="s2", number=2), actor=PERSON)
    permit = bench.relaunch()
    bench.do(
        end("gate", {"choice": "go"}, number=2),
        begin("deploy", visit=2, number=2, node_type="action"),
        permit=permit,
    )
    bench.do(reserve("deploy", request=changed, number=2), permit=permit)


def test_an_action_that_nobody_approved_never_runs(bench: Harness) -> None:
    """An earlier approval ends with the next question, whatever that is answered."""
    _approved(bench)
    permit = bench.relaunch()
    bench.do(end("gate", {"choice": "go"}), begin("deploy", node_type="action"), permit=permit)
    why = Failure("approvalStale", "another request")
    failed = FinishAttempt(RUN, begin("deploy").attempt_id, "failed", failure=why)
    bench.do(failed, permit=permit)
    bench.do(begin("gate", visit=2, number=2, node_type="checkpoint"), permit=permit)
    bench.do(asks({"other": True}, number=2), permit=permit)
    bench.do(given("go", name="s2", number=2), actor=PERSON)
    permit = bench.relaunch()
    bench.do(
        end("gate", {"choice": "go"}, number=2),
        begin("deploy", visit=2, number=2, node_type="action"),
        permit=permit,
    )
    refused = bench.answer(reserve("deploy", request=PLAN, number=2), permit=permit)
    assert refused.code == "approvalStale"
