"""Pi ends at any moment; its session goes on from the file, and only Pi writes that file."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.pi.home import PiHome
from tests.pi.model import Call, Hold, Model, Record, Says
from tests.pi.pi import Pi, like, said
from tests.process.installation import await_true

pytestmark = pytest.mark.slow

StartPi = Callable[..., Pi]


def events(home: PiHome, name: str) -> list[Record]:
    """Return what the probe was told of one kind of event."""
    return [line for line in home.trace() if line["event"] == name]


def test_a_kill_during_an_answer_keeps_the_prompt(start_pi: StartPi, model: Model) -> None:
    """After a kill the file holds the prompt and no answer; the resumed session shows it again."""
    hold = Hold()
    model.plan(Says("one two three four", hold=hold), Says("Here I am."))
    pi = start_pi()
    session, file = pi.session_id(), pi.session_file()
    pi.start_prompt("count")
    hold.await_reached()
    pi.kill()
    model.await_exchange(1, "left")
    kept = file.look()[1:]
    assert [each["type"] for each in kept[-2:]] == ["message", "message"]
    assert "count" in str(kept[-1])
    again = start_pi(session=file.path)
    assert again.session_id() == session
    assert again.entries() == kept
    assert said(again.prompt("go on")) == ["Here I am."]
    assert model.exchanges[-1].texts[1:] == ["count", "go on"]
    file.assert_is(again.entries())


def test_a_kill_during_a_tool_leaves_a_call_without_a_result(
    start_pi: StartPi, model: Model, pi_home: PiHome
) -> None:
    """The resumed session does not run the tool again; only the request has a result for it."""
    model.plan(Says("", (Call("probe", {"text": "x", "wait": True}),)), Says("Noted."))
    pi = start_pi()
    file = pi.session_file()
    mark = pi.start_prompt("wait")
    pi.await_record(like(type="tool_execution_start"), mark)
    pi.kill()
    kept = file.look()
    again = start_pi(session=file.path)
    assert said(again.prompt("go on")) == ["Noted."]
    asked = model.exchanges[-1]
    assert asked.roles == ["system", "user", "assistant", "tool", "user"]
    assert asked.texts[3] == "No result provided"
    assert file.look()[: len(kept)] == kept
    file.assert_is(again.entries())
    assert events(pi_home, "tool_execution_end") == []


@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGTERM"])
def test_a_shell_command_outlives_a_kill_alone(
    start_pi: StartPi, model: Model, pi_home: PiHome, signal_name: str
) -> None:
    """A command of the shell tool is in no group of Pi's: only an orderly end takes it along."""
    model.plan(Says("", (Call("bash", {"command": "echo $$ > pid; exec sleep 1000"}),)))
    pi = start_pi()
    mark = pi.start_prompt("wait")
    pi.await_record(like(type="tool_execution_start"), mark)
    file = pi_home.project / "pid"
    await_true(lambda: file.exists() and file.read_text().endswith("\n"), "the command to run")
    command = int(file.read_text())
    assert os.getpgid(command) != os.getpgid(pi.process.pid)
    if signal_name == "SIGKILL":
        pi.kill()
        assert pi_home.processes() == [command]
    else:
        assert pi.terminate() == 143
        await_true(lambda: pi_home.processes() == [], "the command to end")


def test_an_orderly_end_tells_the_extension(start_pi: StartPi, pi_home: PiHome) -> None:
    """Closed input ends Pi with 0, a signal with 143; an extension hears of both, of a kill not."""
    assert start_pi().close() == 0
    pi = start_pi()
    pi.session_id()
    assert pi.terminate() == 143
    pi = start_pi()
    pi.session_id()
    pi.kill()
    assert [line["reason"] for line in events(pi_home, "session_start")] == ["startup"] * 3
    assert [line["reason"] for line in events(pi_home, "session_shutdown")] == ["quit"] * 2


def test_the_entry_is_the_receipt_of_a_message(
    start_pi: StartPi, model: Model, pi_home: PiHome
) -> None:
    """A message is an entry at once while Pi is idle; while it is busy, when Pi comes to it."""
    hold = Hold()
    model.plan(Says("one two", hold=hold), Says("I saw the first."), Says("I saw the second."))
    pi = start_pi()
    pi.probe(do="message", text="stored", delivery="idle")
    mark = pi.start_prompt("work")
    hold.await_reached()
    pi.probe(do="message", text="steered", delivery="steer", deliverAs="steer")
    pi.probe(do="message", text="later", delivery="follow", deliverAs="followUp")
    pi.probe(do="message", text="silent", delivery="silent", triggerTurn=False)
    hold.release()
    pi.await_record(like(type="agent_settled"), mark)
    sent = {line["delivery"]: line["deliveries"] for line in events(pi_home, "sent")}
    assert sent == {"idle": ["idle"], "steer": ["idle"], "follow": ["idle"], "silent": ["idle"]}
    (settled,) = events(pi_home, "agent_settled")
    assert settled["idle"] is True
    assert settled["deliveries"] == ["idle", "silent", "steer", "follow"]
    shown = [exchange.texts[-1] for exchange in model.exchanges]
    assert shown == ["work", "steered", "later"]
    pi.session_file().assert_is(pi.entries())


def test_queued_messages_die_with_pi(start_pi: StartPi, model: Model, pi_home: PiHome) -> None:
    """What Pi has not come to before a kill is in no file: whoever sent it has to send it again."""
    hold = Hold()
    model.plan(Says("one two", hold=hold), Says("What was it?"))
    pi = start_pi()
    file = pi.session_file()
    pi.start_prompt("work")
    hold.await_reached()
    for way in ("steer", "followUp", "nextTurn"):
        pi.probe(do="message", text="lost", delivery=way, deliverAs=way)
    pi.kill()
    again = start_pi(session=file.path)
    again.prompt("go on")
    assert events(pi_home, "agent_settled")[-1]["deliveries"] == []
    assert "lost" not in model.exchanges[-1].texts
    file.assert_is(again.entries())
