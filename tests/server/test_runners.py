"""Real runners under the real supervisor: killed, followed by another, gone without a trace."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from pi_workflows.authoring.loading import load
from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.clock import SystemClock
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.start import Source, StartRun
from pi_workflows.server.launch import RunnerProgram
from pi_workflows.server.launch_options import LaunchOptions
from pi_workflows.server.registry import Registry
from tests.server.processes import PATIENCE_SECONDS, cookied
from tests.server.stage import Stage, staged

pytestmark = pytest.mark.slow

HEAD = """
from datetime import timedelta
from pathlib import Path
from pydantic import BaseModel
from pi_workflows import *

class Input(BaseModel):
    place: Path
"""
LINES = (
    HEAD
    + """
def command(number):
    return lambda ctx: Command(["sh", "-c", f"echo {number} >> {ctx.input.place}/lines"])

names = [f"n{number}" for number in range(6)]
workflow = define_workflow(
    name="lines",
    input=Input,
    start="n0",
    nodes={
        name: shell(command(name), effect=idempotent_effect("line")) for name in names
    },
    edges=[edge(a, b) for a, b in zip(names, names[1:])],
)
"""
)
# A shell whose children ignore SIGTERM, one of them in a session of its own.
TREE = (
    HEAD
    + """
TEXT = '''trap "" TERM
(trap "" TERM; sleep 1000) &
setsid sh -c 'trap "" TERM; sleep 1000' &
touch {0}/here
wait
'''

workflow = define_workflow(
    name="tree",
    input=Input,
    start="tree",
    nodes={
        "tree": shell(
            lambda ctx: Command(["sh", "-c", TEXT.format(ctx.input.place)]),
            effect=idempotent_effect("tree"),
        )
    },
    edges=[],
)
"""
)


class Scene:
    """A real server's runner side, and a place for what its runs do.

    Attributes:
        stage: The parts.
        place: Where runs leave traces.
        children: The registry's directory.
    """

    def __init__(self, stage: Stage, directory: Path) -> None:
        self.stage = stage
        self.place = directory
        self.children = directory / "children"

    async def start(self, text: str) -> None:
        """Queue a run of a workflow file, as `run.start` does."""
        path = self.place / "sample_workflow.py"
        path.write_text(text)
        loaded = load(path)
        loaded.close()
        options = LaunchOptions(
            environment={"PATH": os.environ["PATH"]}, source_files=loaded.source_files
        )
        await self.stage.do(
            StartRun(
                run_id="run-1",
                project_path=str(self.place),
                workflow_name=loaded.workflow.name,
                workflow_ref=str(path),
                sources=(Source("", "file", loaded.source.ref, loaded.source.revision),),
                definition=Blob.json(loaded.workflow.snapshot.document()),
                run_input=Blob.json({"place": str(self.place)}),
                launch_options=options.blob(),
                title=None,
                origin_session_id="local-run-1",
                execution_mode="headless",
            )
        )

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Wait for something that processes do."""
        while not is_true():  # noqa: ASYNC110 - nobody announces what processes do
            await trio.sleep(0.01)

    @property
    def status(self) -> object:
        """The run's status."""
        return self.stage.row("runs")["status"]

    @property
    def worker_epochs(self) -> list[str]:
        """Every runner so far."""
        return [str(row["worker_epoch"]) for row in self.stage.rows("run_workers")]

    def runner_pid(self) -> int:
        """Return the newest runner's process."""
        pid = self.stage.rows("run_workers")[-1]["pid"]
        assert isinstance(pid, int)
        return pid


@asynccontextmanager
async def scene(directory: Path) -> AsyncGenerator[Scene]:
    """Give a scene; afterwards no process of its runners is left, and no registry entry."""
    children = directory / "children"
    children.mkdir()
    starter = RunnerProgram(Registry(children), dict(os.environ))
    async with staged(directory / "state", clock=SystemClock(), starter=starter) as stage:
        made = Scene(stage, directory)
        yield made
        epochs = made.worker_epochs
    assert epochs
    assert cookied(epochs) == []
    assert list(children.iterdir()) == []


def really(script: Callable[[], Awaitable[None]]) -> None:
    """Run a test in real time."""

    async def run() -> None:
        with trio.fail_after(PATIENCE_SECONDS):
            await script()

    trio.run(run)


def lines(place: Path) -> list[str]:
    """Return what the shells of a run wrote."""
    return (place / "lines").read_text().split()


def test_workflow_file_runs_to_its_end(tmp_path: Path) -> None:
    """Six shell steps in six processes, each once, and the run ends with the last receipt."""

    async def script() -> None:
        async with scene(tmp_path) as made:
            await made.start(LINES)
            await made.until(lambda: made.status == "completed")
            assert lines(tmp_path) == [f"n{number}" for number in range(6)]
            await made.stage.ended()
            worker = made.stage.row("run_workers")
            assert (worker["status"], worker["exit_code"]) == ("exited", 0)
            output = canonical.decode(made.stage.blob(made.stage.row("runs")["final_output_hash"]))
            assert isinstance(output, dict)
            assert output["exitCode"] == 0

    really(script)


def test_killed_runner_is_followed_by_another(tmp_path: Path) -> None:
    """SIGKILL in the middle costs no step: every effect is applied once and the run completes."""

    async def script() -> None:
        async with scene(tmp_path) as made:
            await made.start(LINES)
            await made.until(lambda: (tmp_path / "lines").exists() and len(lines(tmp_path)) >= 3)
            os.kill(made.runner_pid(), signal.SIGKILL)
            await made.until(lambda: made.status == "completed")
            await made.stage.ended()
            assert sorted(set(lines(tmp_path))) == [f"n{number}" for number in range(6)]
            assert len(made.stage.rows("run_steps")) == 6
            applied = [row for row in made.stage.rows("effects") if row["effect_type"] == "line"]
            assert [row["status"] for row in applied] == ["applied"] * 6
            ended = [row["status"] for row in made.stage.rows("run_workers")]
            assert ended == ["crashed", "exited"]

    really(script)


@pytest.mark.parametrize("command", [CancelRun, PauseRun])
def test_shell_tree_ends_with_its_run(tmp_path: Path, command: type[CancelRun | PauseRun]) -> None:
    """Children that ignore SIGTERM, and one that left the session, are gone afterwards."""

    async def script() -> None:
        async with scene(tmp_path) as made:
            await made.start(TREE)
            await made.until((tmp_path / "here").exists)
            assert len(cookied(made.worker_epochs)) >= 4
            await made.stage.do(command("run-1"))
            await made.stage.ended()
            assert cookied(made.worker_epochs) == []
            assert list(made.children.iterdir()) == []

    really(script)


def test_paused_run_goes_on_where_it_stood(tmp_path: Path) -> None:
    """Steps before the pause are not taken again; the interrupted one is."""

    async def script() -> None:
        async with scene(tmp_path) as made:
            await made.start(LINES)
            await made.until((tmp_path / "lines").exists)
            await made.stage.do(PauseRun("run-1"))
            await made.stage.ended()
            assert made.stage.row("run_queue")["status"] == "parked"
            await made.stage.do(ResumeRun("run-1"))
            await made.until(lambda: made.status == "completed")
            await made.stage.ended()
            assert len(made.stage.rows("run_steps")) == 6
            assert sorted(set(lines(tmp_path))) == [f"n{number}" for number in range(6)]

    really(script)


def test_changed_source_is_not_executed(tmp_path: Path) -> None:
    """A file that differs from the one that the run was started with parks it."""

    async def script() -> None:
        async with scene(tmp_path) as made:
            made.stage.scheduler.runners_max = 0
            await made.start(LINES)
            (tmp_path / "sample_workflow.py").write_text("raise SystemExit\n")
            made.stage.scheduler.runners_max = 1
            await made.stage.do(PauseRun("run-1"))
            await made.stage.do(ResumeRun("run-1"))
            await made.until(
                lambda: made.stage.row("run_queue")["error_code"] == "workflowSourceChanged"
            )
            await made.stage.ended()
            assert made.stage.rows("node_attempts") == []

    really(script)
