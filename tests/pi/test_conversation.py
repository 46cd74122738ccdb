"""A real Pi talks with the scripted model, and an extension takes part."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.pi.home import PiHome
from tests.pi.model import Breaks, Call, Hold, Model, Refuses, Says
from tests.pi.pi import Pi, asks_ui, like, said

pytestmark = pytest.mark.slow

StartPi = Callable[..., Pi]


def test_a_prompt_is_answered_and_kept(start_pi: StartPi, model: Model) -> None:
    """A prompt is one request, and what both said is all that the session's file holds."""
    model.plan(Says("Good morning to you."))
    pi = start_pi()
    found = pi.prompt("good morning")
    assert said(found) == ["Good morning to you."]
    (exchange,) = model.exchanges
    assert exchange.roles == ["system", "user"]
    assert exchange.texts[-1] == "good morning"
    assert exchange.session_id == pi.session_id()
    pi.session_file().assert_is(pi.entries())
    assert pi.close() == 0


def test_the_model_calls_tools_of_an_extension(start_pi: StartPi, model: Model) -> None:
    """Two calls of one answer run, and their results are shown to the model in the order asked."""
    calls = tuple(Call("probe", {"text": name}) for name in ("first", "second \u2028 line"))
    model.plan(Says("Let me look.", calls), Says("Seen."))
    pi = start_pi()
    found = pi.prompt("look twice")
    assert said(found) == ["Let me look.", "Seen."]
    ends = [each for each in found if each["type"] == "tool_execution_end"]
    assert [each["isError"] for each in ends] == [False, False]
    first, second = model.exchanges
    assert "probe" in first.tools
    assert second.roles == ["system", "user", "assistant", "tool", "tool"]
    assert second.texts[-2:] == ["probed first", "probed second \u2028 line"]
    pi.session_file().assert_is(pi.entries())


def test_failures_of_the_model_are_tried_again(start_pi: StartPi, model: Model) -> None:
    """A refusal and a cut connection cost a retry each, and the prompt is answered all the same."""
    model.plan(Refuses(503), Breaks("I was about to"), Says("Now it works."))
    pi = start_pi()
    found = pi.prompt("try")
    assert said(found)[-1] == "Now it works."
    assert len([each for each in found if each["type"] == "auto_retry_start"]) == 2
    assert [each.ending for each in model.exchanges] == ["refused", "broken", "whole"]
    pi.session_file().assert_is(pi.entries())


def test_an_abort_ends_the_answer(start_pi: StartPi, model: Model) -> None:
    """An abort leaves the model's connection, settles as aborted, and the session goes on."""
    hold = Hold()
    model.plan(Says("one two three four", hold=hold), Says("Back again."))
    pi = start_pi()
    mark = pi.start_prompt("count")
    hold.await_reached()
    assert pi.command("prompt", message="more")["success"] is False
    pi.ask("abort")
    assert pi.await_record(like(type="agent_settled"), mark)["aborted"] is True
    model.await_exchange(1, "left")
    assert said(pi.prompt("go on")) == ["Back again."]
    assert model.exchanges[-1].texts[-1] == "go on"
    pi.session_file().assert_is(pi.entries())


def test_an_abort_reaches_a_tool(start_pi: StartPi, model: Model) -> None:
    """A tool that waits is told of the abort; its call ends as an error, and no answer follows."""
    model.plan(Says("", (Call("probe", {"text": "x", "wait": True}),)))
    pi = start_pi()
    mark = pi.start_prompt("wait")
    pi.await_record(like(type="tool_execution_start"), mark)
    pi.ask("abort")
    assert pi.await_record(like(type="agent_settled"), mark)["aborted"] is True
    assert pi.await_record(like(type="tool_execution_end"), mark)["isError"] is True
    assert len(model.exchanges) == 1


def test_what_an_extension_shows_is_a_record(start_pi: StartPi) -> None:
    """Widgets, status texts and notices come out as they were given; a cleared one has no text."""
    pi = start_pi()
    pi.probe(do="widget", lines=["step 1 of 3", "step 2 \u2028 of 3"], placement="belowEditor")
    shown = pi.await_record(asks_ui("setWidget", widgetKey="probe"))
    assert shown["widgetLines"] == ["step 1 of 3", "step 2 \u2028 of 3"]
    assert shown["widgetPlacement"] == "belowEditor"
    pi.probe(do="status", text="running")
    pi.await_record(asks_ui("setStatus", statusKey="probe", statusText="running"))
    pi.probe(do="notify", text="hello")
    pi.await_record(asks_ui("notify", message="hello", notifyType="info"))
    mark = pi.mark()
    pi.probe(do="widget")
    assert "widgetLines" not in pi.await_record(asks_ui("setWidget"), mark)
    pi.probe(do="status")
    assert "statusText" not in pi.await_record(asks_ui("setStatus"), mark)


@pytest.mark.parametrize("answer", [True, False])
def test_a_dialog_is_answered(start_pi: StartPi, *, answer: bool) -> None:
    """A dialog of an extension waits for its answer, and gets the one that was given."""
    pi = start_pi()
    pi.send({"type": "prompt", "message": '/probe {"do": "confirm", "title": "Sure?"}'})
    pi.reply(pi.await_record(asks_ui("confirm", title="Sure?")), confirmed=answer)
    pi.await_record(asks_ui("notify", message=f"confirmed: {str(answer).lower()}"))


def test_sessions_are_told_apart(start_pi: StartPi, model: Model, pi_home: PiHome) -> None:
    """Two processes of one home have a session each, and the model knows which one asks."""
    model.respond(lambda exchange: Says(f"You are {exchange.session_id}."))
    first, second = start_pi(), start_pi()
    for pi in (first, second):
        assert said(pi.prompt("who am I")) == [f"You are {pi.session_id()}."]
        pi.session_file().assert_is(pi.entries())
    assert first.session_id() != second.session_id()
    assert {path.name for path in pi_home.session_files()} == {
        pi.session_file().path.name for pi in (first, second)
    }
