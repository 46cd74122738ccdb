"""What a person sees of Pi in a terminal."""

from __future__ import annotations

import json

import pytest

from tests.pi.model import Call, Hold, Model, Says
from tests.pi.terminal import Terminal

pytestmark = pytest.mark.slow

CTRL_SHIFT_W = b"\x1b[119;6u"


def row(screen: str, text: str) -> int:
    """Return which line of a screen is this text and nothing else; -1 when none is."""
    lines = [line.strip() for line in screen.splitlines()]
    return lines.index(text) if text in lines else -1


def test_a_person_talks_with_the_model(terminal: Terminal, model: Model) -> None:
    """A typed prompt, the tool's row and the answer stand on the screen; Escape aborts."""
    hold = Hold()
    model.plan(
        Says("", (Call("probe", {"text": "the wall"}),)),
        Says("The wall is sound."),
        Says("ninety-nine ninety-eight", hold=hold),
    )
    terminal.await_text("scripted")
    terminal.say("look at the wall")
    shown = terminal.await_text("The wall is sound.")
    assert "look at the wall" in shown
    assert "probed the wall" in shown
    terminal.say("count down")
    hold.await_reached()
    terminal.await_text("ninety-nine")
    terminal.press("Escape")
    model.await_exchange(3, "left")
    terminal.await_text("aborted")


def test_a_person_sees_what_an_extension_shows(terminal: Terminal) -> None:
    """A widget stands above the editor, ten lines of it, and a status in the footer."""
    terminal.await_text("scripted")
    terminal.say('/probe {"do": "status", "text": "two of three"}')
    terminal.await_screen(lambda shown: row(shown, "two of three") > 0, "the status")
    lines = [f"row {number}" for number in range(1, 13)]
    terminal.say(f'/probe {{"do": "widget", "lines": {json.dumps(lines)}}}')
    shown = terminal.await_screen(lambda shown: row(shown, "row 10") > 0, "the widget")
    first = row(shown, "row 1")
    assert [line.strip() for line in shown.splitlines()[first : first + 10]] == lines[:10]
    assert row(shown, "row 11") == -1
    assert row(shown, "two of three") > first + 10
    terminal.send_bytes(CTRL_SHIFT_W)
    terminal.await_screen(lambda shown: row(shown, "row 1") == -1, "the widget to go")


def test_a_killed_pi_leaves_its_terminal(terminal: Terminal) -> None:
    """A kill ends Pi alone: what it showed can still be read."""
    terminal.await_text("scripted")
    assert terminal.is_alive
    terminal.kill_pi()
    assert "scripted" in terminal.screen()
