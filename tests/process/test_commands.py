"""What a person does to a run, each from the command line, with real steps and real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from tests.process.installation import Installation, await_true, text_at

PROGRAM = Path(sys.prefix) / "bin" / "pi-workflows"

IMPORTS = """
from datetime import timedelta
from pathlib import Path
from pi_workflows import (
    Command, Retry, action, compute, define_workflow, edge, idempotent_effect, shell, switch,
)
from pydantic import BaseModel

class Input(BaseModel):
    directory: str
"""

# The shell, a child in its group, and a child that left for a session of its own.
TREE = (
    IMPORTS
    + """
SCRIPT = "sleep 600 & setsid sleep 601 & echo begun > begun; wait"
wait = shell(
    lambda ctx: Command(["sh", "-c", SCRIPT], cwd=ctx.input.directory),
    effect=idempotent_effect("sleep"),
)
workflow = define_workflow(name="tree", input=Input, start="wait", nodes={"wait": wait})
"""
)

PAUSED = (
    IMPORTS
    + """
@action(effect=idempotent_effect("wait"))
def wait(ctx):
    directory = Path(ctx.input.directory)
    (directory / f"try-{ctx.attempt_number}").touch()
    while not (directory / "go").exists() and not ctx.cancel.wait(0.02):
        pass
    return ctx.attempt_number

workflow = define_workflow(name="paused", input=Input, start="wait", nodes={"wait": wait})
"""
)

THIRD = (
    IMPORTS
    + """
@action(effect=idempotent_effect("test"),
        retry=Retry(max_attempts=3, on=("failed",), delay=timedelta(milliseconds=50)))
def flaky(ctx):
    with (Path(ctx.input.directory) / "tries").open("a") as file:
        file.write("x")
    if ctx.effect_attempt < 3:
        raise ValueError("not yet")
    return "done"

workflow = define_workflow(name="third", input=Input, start="flaky", nodes={"flaky": flaky})
"""
)

TIMED = (
    IMPORTS
    + """
@compute
def late(ctx):
    return "routed"

workflow = define_workflow(
    name="timed", input=Input, start="slow",
    nodes={"slow": shell(Command(["sleep", "600"]), effect=idempotent_effect("sleep"),
                         timeout=timedelta(milliseconds=300)), "late": late},
    edges=[switch("slow", on="$result.outcome",
                  cases={"ok": "late", "failed": "late", "timed_out": "late"})],
)
"""
)

ENDLESS = (
    IMPORTS
    + """
@compute
def again(ctx):
    return ctx.visit

workflow = define_workflow(
    name="endless", input=Input, start="again", nodes={"again": again},
    edges=[edge("again", "again")], max_steps=7,
)
"""
)


def command(installation: Installation, *arguments: str) -> tuple[int, dict[str, Json]]:
    """Run a command with `--json`; return its exit code and its last document."""
    done = subprocess.run(
        [PROGRAM, *arguments, "--json"],
        cwd=installation.project,
        env=installation.environment(),
        capture_output=True,
        check=False,
        timeout=120,
    )
    document: dict[str, Json] = json.loads(done.stdout.splitlines()[-1])
    return done.returncode, document


def run(installation: Installation, text: str, *options: str) -> tuple[int, dict[str, Json]]:
    """Run a workflow of the installation under the ID `run`."""
    file = installation.write("sample", text)
    run_input = json.dumps({"directory": str(installation.root)})
    return command(
        installation, "run", str(file), "--input", run_input, "--run-id", "run", *options
    )


@pytest.fixture
def served(installation: Installation) -> Installation:
    """Give an installation whose server runs."""
    installation.start()
    return installation


@pytest.mark.slow
def test_a_node_is_paused_and_resumed(served: Installation) -> None:
    """The pause ends the attempt; the resume begins the same visit under the next number."""
    code, started = run(served, PAUSED, "--detach")
    assert (code, started["outcome"]) == (0, "started")
    await_true((served.root / "try-1").exists, "the first attempt")
    assert command(served, "pause", "run")[0] == 0
    assert command(served, "watch", "run")[0] == 11
    await_true(lambda: served.runners() == [], "the runner to end")
    (served.root / "go").touch()
    assert command(served, "resume", "run")[0] == 0
    served.await_status("run", "completed")
    assert text_at(served.view("run"), "display", "status") == "completed"
    state = served.view("run")["state"]
    assert isinstance(state, dict)
    assert state["finalOutput"] == 2
    served.stop()
    served.assert_sound()


@pytest.mark.slow
def test_a_cancel_leaves_no_process(served: Installation) -> None:
    """The whole tree of a running command is ended, also what left its group and session."""
    run(served, TREE, "--detach")
    await_true((served.root / "begun").exists, "the command to begin")
    assert len(served.processes()) >= 3
    code, receipt = command(served, "cancel", "run")
    assert (code, receipt["outcome"]) == (0, "accepted")
    assert command(served, "watch", "run")[0] == 6
    await_true(lambda: served.runners() == [], "the runner to end")
    await_true(
        lambda: sleeping(served.root) == [], "the tree to end", lambda: str(sleeping(served.root))
    )
    served.stop()
    served.assert_sound()


def sleeping(root: Path) -> list[str]:
    """Return the command lines of the tree's sleepers that work in a directory."""
    found: list[str] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cwd").readlink() == root:
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
    return [line for line in found if line.startswith("sleep 60")]


@pytest.mark.slow
def test_a_retry_succeeds_on_its_third_attempt(served: Installation) -> None:
    """The run completes; the action ran three times in one visit."""
    code, document = run(served, THIRD)
    assert (code, document["outcome"]) == (0, "completed")
    assert (served.root / "tries").read_text() == "xxx"
    view = served.view("run")
    assert view["stepTotal"] == 3
    assert view["state"] is not None
    served.stop()
    served.assert_sound()


@pytest.mark.slow
def test_a_timeout_is_routed(served: Installation) -> None:
    """`$result.outcome` leads on from a node whose time ran out."""
    code, document = run(served, TIMED)
    assert (code, document["outcome"]) == (0, "completed")
    state = served.view("run")["state"]
    assert isinstance(state, dict)
    assert state["finalOutput"] == "routed"
    served.stop()
    served.assert_sound()


@pytest.mark.slow
def test_a_loop_stops_at_its_limit(served: Installation) -> None:
    """The run fails with `maxSteps` after exactly as many steps as it may take."""
    code, document = run(served, ENDLESS)
    assert (code, document["outcome"]) == (1, "failed")
    view = served.view("run")
    assert view["stepTotal"] == 7
    state = view["state"]
    assert isinstance(state, dict)
    assert "maxSteps" in json.dumps(state) or "7 steps" in json.dumps(state)
    served.stop()
    served.assert_sound()
