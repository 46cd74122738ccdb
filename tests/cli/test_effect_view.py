"""What a person reads who has to say what became of an effect."""

from __future__ import annotations

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.cli.effect_view import choice_text, standing_cell, write_effect
from pi_workflows.cli.output import Output
from pi_workflows.protocol.effects import EffectChoice, EffectDecision, EffectItem, EffectTry
from pi_workflows.protocol.proposals import Failure

AT_MS = 1_700_000_000_000
GOES_ON = EffectChoice(action="confirm", status="applied", run="goesOn", next_node="book")
AGAIN = EffectChoice(action="retry", status="pending", run="goesOn", next_node="pay", attempt=2)
NEVER = EffectChoice(action="retry", status="pending", run="unchanged", refused="runTerminal")
REFUSED = EffectChoice(action="reject", status="rejected", run="failed")


def effect(**more: object) -> EffectItem:
    """Return an ambiguous effect, with some members of its own."""
    known: dict[str, object] = {
        "effect_id": "effect-1",
        "run_id": "pay-1",
        "run_status": "running",
        "run_paused": False,
        "node_path": "pay",
        "visit": 1,
        "effect_type": "bank.pay",
        "recovery": "manual",
        "status": "ambiguous",
        "attempts": 1,
        "request": None,
        "tries": (),
        "created_at": AT_MS,
        "updated_at": AT_MS,
    }
    return EffectItem.model_validate({**known, **more}, by_name=True)


@pytest.mark.parametrize(
    ("choice", "more", "text"),
    [
        (
            GOES_ON,
            {},
            (
                "It happened. The evidence becomes its result; a JSON object is taken as the"
                " result. The run goes on at book."
            ),
        ),
        (
            GOES_ON.model_copy(update={"next_node": None, "needs_result": "pay_workflow.Receipt"}),
            {"run_paused": True},
            (
                "It happened. Give its result as the evidence: a JSON object, Receipt."
                " The run goes on once it is resumed."
            ),
        ),
        (
            GOES_ON.model_copy(update={"run": "unchanged", "next_node": None}),
            {"run_status": "cancelled"},
            "It happened. Only the record changes: the run is cancelled.",
        ),
        (AGAIN, {}, "Begin try 2. If it did happen after all, it happens twice."),
        (
            NEVER,
            {"run_status": "failed"},
            "Not possible: the run has ended, and nothing would try again.",
        ),
        (REFUSED, {}, "It did not happen and shall not. pay fails. The run fails."),
        (
            REFUSED.model_copy(update={"run": "completed"}),
            {"run_paused": True},
            "It did not happen and shall not. pay fails. The run completes once it is resumed.",
        ),
    ],
)
def test_each_answer_is_told_for_this_very_case(
    choice: EffectChoice, more: dict[str, object], text: str
) -> None:
    """Where the run goes, what has to be given, and what is not possible."""
    assert choice_text(effect(**more), choice) == text


def test_a_retry_that_is_still_to_come_is_told() -> None:
    """One that is due is as pending as any other."""
    later = effect(status="pending", next_attempt_at=AT_MS + 300_000)
    assert standing_cell(later, AT_MS) == ("pending, in 5 min", "")
    assert standing_cell(later, AT_MS + 300_000) == ("pending", "")


def test_everything_that_is_known_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """What was asked for, the tries, what there was of it, what was decided, what can be said."""
    item = effect(
        attempts=2,
        tries=(
            EffectTry(number=1, started_at=AT_MS, finished_at=AT_MS + 900, outcome="ambiguous"),
            EffectTry(
                number=2,
                started_at=AT_MS + 5_000,
                finished_at=AT_MS + 7_000,
                outcome="ambiguous",
                error=Failure(code="timedOut", message="too late"),
            ),
        ),
        last_error=Failure(code="timedOut", message="too late"),
        decisions=(
            EffectDecision(at=AT_MS + 2_000, action="retry", actor="human", evidence="no\x1border"),
        ),
        choices=(GOES_ON, AGAIN, REFUSED),
    )
    values: dict[str, Json] = {
        "request": {"cents": 42},
        "output": {"stdout": "sent\nwaiting"},
        "progress": None,
    }
    write_effect(Output(is_json=False, no_color=True), item, values, AT_MS + 60_000)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    lines = [line.strip() for line in shown.split("\n")]
    for line in (
        "bank.pay of pay",
        "status   ambiguous  nobody knows whether it happened",
        "run      pay-1, which stands still until somebody says what happened",
        "type     bank.pay, manual: it must not be repeated unseen",
        "cents: 42",
        "timedOut: too late",
        "sent",
        (
            "confirm  It happened. The evidence becomes its result; a JSON object is taken as the"
            " result. The run goes on at book."
        ),
        "pi-workflows effects resolve effect-1 confirm --evidence TEXT",
    ):
        assert line in lines, line
    assert [line.split()[0] for line in lines if " ambiguous" in line and line[0].isdigit()] == [
        "1",
        "2",
    ]
    assert any("retry by human: no" in line for line in lines)
    assert "What its step said last" not in shown


def test_a_settled_effect_has_nothing_to_be_said_about(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither answers nor a command are offered."""
    values: dict[str, Json] = {"request": None, "output": {"id": 7}, "progress": None}
    write_effect(Output(is_json=False, no_color=True), effect(status="applied"), values, AT_MS)
    shown = capsys.readouterr().out
    assert "What it gave\n  id: 7\n" in shown
    assert "resolve" not in shown
