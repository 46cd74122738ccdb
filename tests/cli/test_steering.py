"""Steering a run that works, from the command line: pause, resume, cancel; what it copes with."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_workflows.base import canonical
from tests.cli.installation import WORKFLOWS, Installation

pytestmark = pytest.mark.slow
PATIENT = str(WORKFLOWS / "patient_workflow.py")


def processes(installation: Installation) -> Iterator[str]:
    """Yield the command line of every process that works in the project."""
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                here = (each / "cwd").readlink()
                words = (each / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if here == installation.project:
                yield b" ".join(words).decode()


def stand(installation: Installation, run_id: str) -> Path:
    """Start a tree of processes and wait until it stands; return the file that lets it end."""
    gate, done = installation.gate(f"gate-{run_id}"), installation.root / f"done-{run_id}"
    installation.start("tree", run_id, f'{{"gate":"{gate}","done":"{done}"}}')
    wait(gate)
    return done


def wait(gate: Path) -> None:
    """Wait until somebody writes into a named pipe."""
    subprocess.run(["cat", str(gate)], check=True, timeout=60, capture_output=True)


def types(installation: Installation, run_id: str) -> list[object]:
    """Return the types of everything that happened to a run."""
    return [each["type"] for each in installation.cli("events", run_id, "--json").documents]


def test_a_pause_during_a_node(fresh: Installation) -> None:
    """A pause ends what works at once; a resume starts the node again, and the run completes."""
    done = stand(fresh, "pause-1")
    paused = fresh.cli("pause", "pause-1", "--json")
    assert paused.code == 0
    assert fresh.cli("watch", "pause-1").code == 11
    fresh.cli("server", "stop")
    assert list(processes(fresh)) == []
    done.touch()
    assert fresh.cli("resume", "pause-1").out.startswith("pause-1 goes on")
    assert fresh.cli("watch", "pause-1").code == 0
    told = types(fresh, "pause-1")
    assert told.index("run.paused") < told.index("run.resume_requested")
    assert told.count("attempt.settled") == 2


def test_a_cancel_of_a_running_tree(fresh: Installation) -> None:
    """A cancel ends the run for good, and not one of its processes is left, wherever it moved."""
    stand(fresh, "cancel-1")
    assert any("setsid" in words or "sleep" in words for words in processes(fresh))
    assert fresh.cli("cancel", "cancel-1").code == 0
    assert fresh.cli("watch", "cancel-1").code == 6
    # An orderly end waits for what the server still ends.
    fresh.cli("server", "stop")
    assert list(processes(fresh)) == []
    assert fresh.cli("state", "verify").code == 0


def test_a_retry_and_a_timeout_that_is_routed(installation: Installation) -> None:
    """The third try succeeds, and a node that timed out leads where its outcome says."""
    tries = installation.root / "tries-1"
    done = installation.cli(
        "run", PATIENT, "--input", f'{{"tries":"{tries}"}}', "--run-id", "patient-1", "--json"
    )
    assert done.code == 0
    assert tries.read_text() == "xxx"
    view = done.document["view"]
    assert isinstance(view, dict)
    state = view["state"]
    assert isinstance(state, dict)
    assert state["finalOutput"] == {"hang": "timed_out", "tries": 3}
    shown = installation.cli("show", "patient-1").out
    assert "3 attempts" in shown
    assert "timed out" in shown
    events = installation.cli("events", "patient-1").out
    assert all(f"ConnectionError: try {number} failed" in events for number in (1, 2))


def test_a_loop_that_is_stopped(installation: Installation) -> None:
    """A loop that goes round more often than the workflow allows ends its run, and says why."""
    tries = installation.root / "tries-2"
    value = canonical.encode({"tries": str(tries), "rounds": 100}).decode()
    done = installation.cli("run", PATIENT, "--input", value, "--run-id", "loop-1", "--json")
    assert (done.code, done.document["outcome"]) == (1, "failed")
    view = done.document["view"]
    assert isinstance(view, dict)
    state = view["state"]
    assert isinstance(state, dict)
    error = state["error"]
    assert isinstance(error, dict)
    assert error["code"] == "maxSteps"
    assert "10" in installation.cli("show", "loop-1").out.split("Error")[1]
