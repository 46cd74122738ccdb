"""What a person sees: pictures that move, questions to answer, text that is only shown."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from pi_workflows.base import canonical
from tests.cli.installation import WORKFLOWS, Installation
from tests.cli.terminal import ROWS, terminal
from tests.process.installation import await_true

pytestmark = pytest.mark.slow
LINE = str(WORKFLOWS / "line_workflow.py")
ASKS = str(WORKFLOWS / "asks_workflow.py")
FAILS = str(WORKFLOWS / "fails_workflow.py")
COLOR = re.compile(r"\x1b\[[0-9;]*[1-9][0-9;]*m")
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil\nline"


def test_a_run_that_completes(installation: Installation) -> None:
    """The graph with its states, its time, the report as a page, and where there is more."""
    with terminal(installation, "run", LINE, "--run-id", "seen-1") as shown:
        assert shown.end() == 0
    text = shown.text
    assert re.search(r"✔ completed  Say hello  \d+\.\d s", text)
    assert re.search(r"✔ gather  compute  ok", text)
    assert re.search(r"✔ report  compute  ok", text)
    assert " • hello" in text
    assert "# Words" not in text
    assert text.rstrip().endswith("More: pi-workflows show seen-1")


def test_the_result_alone_is_on_standard_output(installation: Installation, tmp_path: Path) -> None:
    """With standard output in a file the picture stays on the terminal, the result in the file."""
    result = tmp_path / "result"
    with result.open("wb") as file:
        shown_on = terminal(installation, "run", LINE, "--run-id", "split-1", stdout=file.fileno())
        with shown_on as shown:
            assert shown.end() == 0
    assert result.read_text() == "# Words\n\n- hello\n"
    assert "✔ gather" in shown.text


def test_a_question_is_asked_field_by_field(installation: Installation) -> None:
    """A waiting run asks, says why an answer is wrong, and goes on with the right one."""
    with terminal(installation, "run", ASKS, "--run-id", "asked-1") as shown:
        shown.until("decision (ship or hold)> ")
        assert "Should it be shipped?" in shown.text
        assert "question: Ship it?" in shown.text
        shown.type("maybe")
        shown.until("Not accepted: decision: choose one of ship, hold")
        shown.until("decision (ship or hold)> ")
        shown.type("sh")
        shown.until("note (text, optional)> ")
        shown.type("on Friday")
        assert shown.end() == 0
    assert "decision: ship" in shown.text
    assert "note: on Friday" in shown.text


def test_a_question_is_answered_as_a_whole(installation: Installation) -> None:
    """JSON answers it at once; what its model refuses is asked again with the model's reason."""
    with terminal(installation, "run", ASKS, "--run-id", "asked-2") as shown:
        shown.until("decision (ship or hold)> ")
        shown.type('{"decision":"ship","by":"me"}')
        shown.until("Not accepted: ")
        assert "by" in shown.text.rpartition("Not accepted: ")[2]
        shown.until("decision (ship or hold)> ")
        shown.type('{"decision":"hold"}')
        assert shown.end() == 0
    assert "decision: hold" in shown.text


def test_a_question_may_stay_open(installation: Installation) -> None:
    """Ctrl-D leaves the run waiting with exit code 10 and says how to answer it later."""
    with terminal(installation, "run", ASKS, "--run-id", "asked-3") as shown:
        shown.until("decision (ship or hold)> ")
        shown.leave()
        assert shown.end() == 10
    assert """pi-workflows answer asked-3 '{"decision":"ship"}'""" in shown.text
    with terminal(installation, "answer", "asked-3") as again:
        again.until("decision (ship or hold)> ")
        again.type('{"decision":"ship"}')
        assert again.end() == 0


def test_a_question_ends_when_somebody_else_answers(installation: Installation) -> None:
    """A prompt that waits for a line ends by itself, and the run is followed to its end."""
    with terminal(installation, "run", ASKS, "--run-id", "asked-5") as shown:
        shown.until("decision (ship or hold)> ")
        assert installation.cli("answer", "asked-5", '{"decision":"hold"}').code == 0
        shown.until("Somebody else has answered")
        assert shown.end() == 0
    assert "decision: hold" in shown.text


def test_an_interrupt_at_the_question_leaves_the_run_alone(installation: Installation) -> None:
    """Ctrl-C ends with 130 and one line that names `watch` and `cancel`; the run still waits."""
    with terminal(installation, "run", ASKS, "--run-id", "asked-4") as shown:
        shown.until("decision (ship or hold)> ")
        shown.interrupt()
        assert shown.end() == 130
    assert "pi-workflows watch asked-4" in shown.text.replace("\n", "")
    assert "pi-workflows cancel asked-4" in shown.text.replace("\n", "")
    assert installation.cli("watch", "asked-4").code == 10


def test_the_picture_moves(installation: Installation) -> None:
    """A run that works shows which node, what it does and for how long, until Ctrl-C."""
    gate = installation.gate("gate-moving")
    installation.start("gated", "moving-1", f'{{"gate":"{gate}"}}')
    for command in ("watch", "view"):
        with terminal(installation, command, "moving-1") as shown:
            shown.until("waiting at the gate")
            shown.until("1.")
            shown.interrupt()
            assert shown.end() == 130
        assert "running" in shown.text
    subprocess.run(["sh", "-c", f"echo go >{gate}"], check=True, timeout=60)


def test_a_lost_server_shows(fresh: Installation) -> None:
    """While the server is gone the picture says so; it goes on when the next one is there."""
    gate = fresh.gate("gate-lost")
    fresh.start("gated", "lost-1", f'{{"gate":"{gate}"}}')
    with terminal(fresh, "watch", "lost-1") as shown:
        shown.until("waiting at the gate")
        assert fresh.cli("server", "stop", "--now").code == 0
        shown.until("The server is gone; reconnecting.")
        shown.until("waiting at the gate")
        shown.until("1.")
        subprocess.run(["sh", "-c", f"echo go >{gate}"], check=True, timeout=60)
        assert shown.end() == 0
    assert shown.text.rstrip().endswith("lost-1: completed")


def _tries(installation: Installation, run_id: str) -> int:
    """Return how often the gate's command was begun."""
    lines = installation.cli("events", run_id, "--json").out.splitlines()
    documents = [canonical.decode(line.encode()) for line in lines]
    begun = [each for each in documents if isinstance(each, dict)]
    return sum((each["type"], each.get("nodeId")) == ("attempt.started", "wait") for each in begun)


def test_a_view_outlives_a_server_that_is_killed(fresh: Installation) -> None:
    """The picture stays and says that it may be old; the run is seen to its end."""
    gate = fresh.gate("gate-killed")
    fresh.start("gated", "killed-1", f'{{"gate":"{gate}"}}')
    pid = fresh.cli("server", "status", "--json").document["pid"]
    assert isinstance(pid, int)
    with terminal(fresh, "view", "killed-1") as shown:
        shown.until("waiting at the gate")
        os.kill(pid, signal.SIGKILL)
        shown.until("The server is gone; reconnecting.")
        # A word that came before would be read by the command that the next server ends.
        await_true(lambda: _tries(fresh, "killed-1") > 1, "another try")
        subprocess.run(["sh", "-c", f"echo fail >{gate}"], check=True, timeout=60)
        assert shown.end() == 0
    last = shown.text.rpartition("killed-1")[2]
    assert re.search(r"✘ check .*→ mend\n      ValueError: the word was fail", last)


def test_a_view_follows_its_window(installation: Installation) -> None:
    """A window that gets narrower loses the types of nodes, not what became of them."""
    gate = installation.gate("gate-resized")
    installation.start("gated", "resized-1", f'{{"gate":"{gate}"}}')
    with terminal(installation, "view", "resized-1", columns=120) as shown:
        shown.until("wait   shell")
        shown.resize(columns=70)
        shown.until("wait   running")
        shown.resize(columns=120)
        shown.until("wait   shell")
        subprocess.run(["sh", "-c", f"echo go >{gate}"], check=True, timeout=60)
        assert shown.end() == 0


def test_a_run_that_asks_is_viewed_with_what_helps(installation: Installation) -> None:
    """The question stands at its node, the command below the heading; one picture is no verdict."""
    installation.start("asks", "viewed-1")
    with terminal(installation, "view", "viewed-1") as shown:
        shown.until("Answer it: pi-workflows answer viewed-1")
        shown.until("Should it be shipped?")
        shown.interrupt()
        assert shown.end() == 130
    with terminal(installation, "view", "viewed-1", "--once") as once:
        assert once.end() == 0
    assert "Answer it: pi-workflows answer viewed-1" in once.text
    installation.start("fails", "viewed-2")
    assert installation.cli("view", "viewed-2").code == 1
    assert installation.cli("view", "viewed-2", "--once").code == 0
    assert installation.cli("view", "nothing-1", "--once").code == 1


def test_several_runs_have_a_row_each(installation: Installation) -> None:
    """A watch of several runs shows one line for each, and what each came to."""
    installation.cli("run", LINE, "--run-id", "row-1")
    installation.cli("run", ASKS, "--run-id", "row-2")
    with terminal(installation, "watch", "row-1", "row-2") as shown:
        assert shown.end() == 10
    assert re.search(r"✔ completed +row-1", shown.text)
    assert re.search(r"\? waiting +row-2 .* ask", shown.text)
    assert "row-2: waiting. Waiting for an answer." in shown.text


@pytest.mark.parametrize("words", [("runs",), ("show", "hostile-1"), ("watch", "hostile-1")])
def test_no_text_of_a_run_commands_the_terminal(
    words: tuple[str, ...], installation: Installation
) -> None:
    """Escape sequences, C1 controls and turned text of a run are shown and never sent."""
    value = canonical.encode({"message": HOSTILE}).decode()
    if installation.cli("show", "hostile-1").code:
        done = installation.cli("run", FAILS, "--input", value, "--run-id", "hostile-1")
        assert not {"\x1b", "\x9b", "\u202e"}.intersection(done.err)
    with terminal(installation, *words) as shown:
        shown.end()
    assert not {"\x07", "\x9b", "\u202e", "\x1b]"}.intersection(shown.raw)
    assert "\x1b]" not in shown.raw
    assert not re.search(r"\x1b(?!\[[0-9;?]*[A-Za-z])", shown.raw)
    if words != ("runs",):
        assert r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202eevil" in shown.text


def test_json_on_a_terminal_is_safe_too(installation: Installation) -> None:
    """Documents keep their meaning and lose what a terminal would obey."""
    value = canonical.encode({"message": HOSTILE}).decode()
    installation.cli("run", FAILS, "--input", value, "--run-id", "hostile-2")
    with terminal(installation, "show", "hostile-2", "--json", columns=10_000) as shown:
        assert shown.end() == 0
    assert not {"\x9b", "\u202e", "\x1b"}.intersection(shown.raw)
    document = canonical.decode(shown.raw.encode(), depth_max=128)
    assert document == installation.cli("show", "hostile-2", "--json").document


def test_colour_is_for_terminals_that_want_it(installation: Installation) -> None:
    """There is colour on a terminal, none with `--no-color`, with NO_COLOR, or in a pipe."""
    installation.cli("run", LINE, "--run-id", "colour-1")
    with terminal(installation, "show", "colour-1") as shown:
        shown.end()
    assert COLOR.search(shown.raw)
    with terminal(installation, "--no-color", "show", "colour-1") as plain:
        plain.end()
    assert "\x1b[3" not in plain.raw
    installation.environment["NO_COLOR"] = "1"
    with terminal(installation, "show", "colour-1") as refused:
        refused.end()
    del installation.environment["NO_COLOR"]
    assert "\x1b[3" not in refused.raw
    assert "\x1b" not in installation.cli("show", "colour-1").out


def test_a_narrow_terminal_cuts_lines_and_keeps_rows(installation: Installation) -> None:
    """However narrow the window, each run has its row and none is wider than the window."""
    installation.cli("run", LINE, "--run-id", "narrow-1")
    with terminal(installation, "runs", columns=40) as shown:
        assert shown.end() == 0
    lines = shown.text.splitlines()
    assert any("narrow-1" in line for line in lines)
    assert max(map(len, lines)) <= 40


def test_a_list_that_is_followed_keeps_its_newest_runs(fresh: Installation) -> None:
    """A list that is longer than the window ends with how many more there are, and cuts IDs."""
    name = "r" * 60
    for number in range(ROWS):
        fresh.start("line", f"{number:02}-{name}")
    with terminal(fresh, "runs", "--follow", "--deadline", "1") as shown:
        assert shown.end() == 8
    last = shown.text.rpartition("STATUS")[2]
    assert f"{ROWS - 1:02}-{name[:20]}" in last
    assert "00-r" not in last
    assert "r…" in last
    assert last.rstrip().splitlines()[-1] == "3 more"
    typed = f"{ROWS - 1:02}-rrr…"
    assert fresh.cli("show", typed).code == 0


def test_verifying_a_file_shows_a_bar_and_takes_it_away(installation: Installation) -> None:
    """A person who waits for a long check sees how far it is; the result stands alone."""
    copy = installation.root / "copy.sqlite"
    installation.cli("state", "backup", str(copy))
    with terminal(installation, "state", "verify", str(copy)) as shown:
        assert shown.end() == 0
    assert "Verifying" in shown.text
    assert shown.text.rstrip().splitlines()[-1].startswith("Sound: ")
    assert [path.name for path in installation.root.glob("*copy*")] == ["copy.sqlite"]
