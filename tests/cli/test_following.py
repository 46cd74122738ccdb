"""`watch`, `events --follow` and `run` stay with a run: through restarts, deadlines, failures."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from tests.cli.installation import WORKFLOWS, Installation

pytestmark = pytest.mark.slow
LINE = str(WORKFLOWS / "line_workflow.py")
ASKS = str(WORKFLOWS / "asks_workflow.py")
GATED = str(WORKFLOWS / "gated_workflow.py")
WAIT_S = 60


def gated(installation: Installation, run_id: str) -> Path:
    """Start a run that waits at a gate; return the gate."""
    gate = installation.gate(f"gate-{run_id}")
    installation.start("gated", run_id, f'{{"gate":"{gate}"}}')
    return gate


def open_gate(gate: Path, word: str = "go") -> None:
    """Let a run go on, as soon as it stands at the gate."""
    # Opening a pipe waits for its reader; in a process of its own that wait has an end.
    command = ["sh", "-c", 'echo "$1" >"$2"', "sh", word, str(gate)]
    subprocess.run(command, check=True, timeout=WAIT_S)


def lines(child: subprocess.Popen[bytes]) -> Iterator[dict[str, Json]]:
    """Yield the documents of a command as they come."""
    assert child.stdout is not None
    for line in child.stdout:
        document = canonical.decode(line)
        assert isinstance(document, dict)
        yield document


def until(documents: Iterator[dict[str, Json]], node: str, event: str) -> list[dict[str, Json]]:
    """Take documents up to an event of a node."""
    found: list[dict[str, Json]] = []
    for document in documents:
        found.append(document)
        if (document.get("nodeId"), document.get("type")) == (node, event):
            break
    return found


def server_pid(installation: Installation) -> int:
    """Return the process of the server."""
    pid = installation.cli("server", "status", "--json").document["pid"]
    assert isinstance(pid, int)
    return pid


def ends(documents: list[dict[str, Json]]) -> list[tuple[Json, Json, Json, Json]]:
    """Return run, outcome, exit code and finality of each last line."""
    return [
        (each["runId"], each["outcome"], each["exitCode"], each["final"])
        for each in documents
        if each["schema"] == "pi-workflows.cli-end.v1"
    ]


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_watch_survives_its_server(way: str, fresh: Installation) -> None:
    """Stopped or killed, the server comes back, and no event is missed or told twice."""
    gate = gated(fresh, "long-1")
    with fresh.spawned("watch", "long-1", "--json") as watch:
        documents = lines(watch)
        told = until(documents, "wait", "attempt.started")
        if way == "stop":
            assert fresh.cli("server", "stop", "--now").code == 0
        else:
            os.kill(server_pid(fresh), signal.SIGKILL)
        # Only now the next server's runner stands at the gate, and not what was left of the last.
        told += until(documents, "wait", "attempt.started")
        open_gate(gate)
        told += list(documents)
        assert watch.wait(WAIT_S) == 0
    assert [each["seq"] for each in told[:-1]] == list(range(1, len(told)))
    assert ends(told) == [("long-1", "completed", 0, True)]


def test_one_last_line_for_each_run(installation: Installation) -> None:
    """Of several runs each has one last line, the last is final, the highest code counts."""
    installation.cli("run", LINE, "--run-id", "several-1")
    installation.cli("run", ASKS, "--run-id", "several-2")
    done = installation.cli("watch", "several-2", "several-1", "several-2", "--json")
    assert done.code == 10
    assert sorted(ends(done.documents), key=str) == [
        ("several-1", "completed", 0, False),
        ("several-2", "waiting", 10, True),
    ]


def test_from_a_number(installation: Installation) -> None:
    """`--from` leaves out what is known, and nothing else."""
    installation.cli("run", LINE, "--run-id", "from-1")
    whole = installation.cli("events", "from-1", "--json").documents
    for command in ("watch", "events"):
        rest = installation.cli(command, "from-1", "--json", "--from", "4").documents
        assert [each["seq"] for each in rest if "type" in each] == [
            each["seq"] for each in whole[4:]
        ]


def test_a_long_trace_has_no_gap(installation: Installation) -> None:
    """More events than a view and a page hold are told all, once, in order."""
    installation.start("loop", "trace-1", '{"rounds":300}')
    assert installation.cli("watch", "trace-1").code == 0
    # Now the run's view holds the end of the trace only.
    watched = installation.cli("watch", "trace-1", "--json").documents
    assert [each["seq"] for each in watched[:-1]] == list(range(1, len(watched)))
    listed = installation.cli("events", "trace-1", "--json").documents
    assert [each["seq"] for each in listed] == list(range(1, len(watched)))


def test_a_deadline(installation: Installation) -> None:
    """When time is up the run goes on, the last line says so, and the exit code is 8."""
    gate = gated(installation, "deadline-1")
    done = installation.cli("watch", "deadline-1", "--json", "--deadline", "0.2")
    assert done.code == 8
    assert ends(done.documents) == [("deadline-1", "deadline", 8, True)]
    text = installation.cli("watch", "deadline-1", "--deadline", "0")
    assert text.code == 8
    assert text.out.splitlines()[-1].endswith("; the deadline has passed")
    open_gate(gate)
    assert installation.cli("watch", "deadline-1").code == 0


def test_a_deadline_of_a_run_that_is_started(installation: Installation) -> None:
    """`run --deadline` leaves the run alone with exit code 8."""
    gate = installation.gate("gate-started")
    value = f'{{"gate":"{gate}"}}'
    words = ("run", GATED, "--input", value, "--run-id", "started-1", "--deadline", "0.2")
    done = installation.cli(*words, "--json")
    assert (done.code, done.document["outcome"]) == (8, "deadline")
    open_gate(gate)
    assert installation.cli("watch", "started-1").code == 0


def test_waiting_for_a_run(installation: Installation) -> None:
    """`--wait-for` follows a run that is started later, from its first event on."""
    with installation.spawned("watch", "later-1", "--wait-for", "--json") as watch:
        installation.start("line", "later-1")
        documents = list(lines(watch))
        assert watch.wait(WAIT_S) == 0
    assert documents[0]["seq"] == 1
    assert ends(documents) == [("later-1", "completed", 0, True)]


def test_waiting_for_a_run_in_vain(installation: Installation) -> None:
    """A run that never comes ends at the deadline, with its one last line."""
    done = installation.cli("watch", "never-1", "--wait-for", "--deadline", "0.2", "--json")
    assert (done.code, ends(done.documents)) == (8, [("never-1", "deadline", 8, True)])


def test_until_the_end(installation: Installation) -> None:
    """`--until-end` goes on while the run waits and is paused, up to its end."""
    installation.start("asks", "end-1")
    with installation.spawned("watch", "end-1", "--until-end", "--json") as watch:
        documents = lines(watch)
        told = until(documents, "ask", "run.waiting")
        assert installation.cli("pause", "end-1").code == 0
        assert installation.cli("resume", "end-1").code == 0
        assert installation.cli("answer", "end-1", '{"decision":"hold"}').code == 0
        told += list(documents)
        assert watch.wait(WAIT_S) == 0
    types = [each["type"] for each in told[:-1]]
    assert types.index("run.waiting") < types.index("run.paused") < types.index("run.completed")
    assert ends(told) == [("end-1", "completed", 0, True)]


def test_standing_still(installation: Installation) -> None:
    """Without it a paused run ends the watch with 11, a cancelled one with 6."""
    installation.cli("run", ASKS, "--run-id", "still-1")
    installation.cli("pause", "still-1")
    paused = installation.cli("watch", "still-1", "--json")
    assert (paused.code, ends(paused.documents)) == (11, [("still-1", "paused", 11, True)])
    installation.cli("cancel", "still-1")
    cancelled = installation.cli("watch", "still-1", "--json")
    assert (cancelled.code, ends(cancelled.documents)) == (6, [("still-1", "cancelled", 6, True)])


def test_the_first_failed_node_ends_a_fast_watch(installation: Installation) -> None:
    """With `--fail-fast` a failed node ends the watch, though its run goes on and completes."""
    gate = gated(installation, "fast-1")
    other = gated(installation, "fast-2")
    words = ("watch", "fast-1", "fast-2", "--fail-fast", "--json")
    with installation.spawned(*words) as watch:
        documents = lines(watch)
        told = until(documents, "wait", "attempt.started")
        open_gate(gate, "fail")
        told += list(documents)
        assert watch.wait(WAIT_S) == 1
    first, second = ends(told)
    assert (first[0], first[2], first[3]) == ("fast-1", 1, False)
    assert second == ("fast-2", "running", 0, True)
    open_gate(other)
    assert installation.cli("watch", "fast-1", "fast-2").code == 0


def test_a_try_that_is_repeated_is_no_failed_node(installation: Installation) -> None:
    """A fast watch goes on while a node is tried again, and ends at the first that is not."""
    tries = installation.root / "tries"
    installation.start("patient", "tries-1", f'{{"tries":"{tries}"}}')
    done = installation.cli("watch", "tries-1", "--fail-fast", "--json")
    assert done.code == 1
    settled = [each["nodeId"] for each in done.documents if each.get("type") == "attempt.settled"]
    assert settled[:4] == ["call", "call", "call", "hang"]


def test_a_failed_run(installation: Installation) -> None:
    """A run that fails ends its watch with 1, and says why."""
    installation.start("fails", "failed-1")
    done = installation.cli("watch", "failed-1")
    assert done.code == 1
    assert done.out.splitlines()[-1].startswith("failed-1: failed. crash: ValueError: it broke")


@pytest.mark.parametrize("words", [("watch", "int-1"), ("events", "int-1", "--follow")])
def test_an_interrupt_leaves_the_run_alone(words: tuple[str, ...], fresh: Installation) -> None:
    """Ctrl-C ends the command with 130 and one line that names `watch` and `cancel`."""
    gate = gated(fresh, "int-1")
    with fresh.spawned(*words) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=WAIT_S)
        assert child.returncode == 130
    (line,) = err.decode().splitlines()
    assert "pi-workflows watch int-1" in line
    assert "pi-workflows cancel int-1" in line
    open_gate(gate)
    assert fresh.cli("watch", "int-1").code == 0


def test_a_pipe_that_closes(installation: Installation) -> None:
    """When the reader goes away the command ends without a word."""
    installation.start("loop", "pipe-1", '{"rounds":300}')
    installation.cli("watch", "pipe-1")
    with installation.spawned("events", "pipe-1") as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr is not None
        assert child.stderr.read() == b""
        assert child.wait(WAIT_S) == 141
