"""Workflow code runs in children: bounded in time, number and tree, warm while nothing changed."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProblemsFound, Refused
from pi_workflows.base.limits import RESOLVERS_MAX
from pi_workflows.server import process
from pi_workflows.server import resolver as module
from pi_workflows.server.log import ServerLog
from pi_workflows.server.paths import prepare
from pi_workflows.server.registry import Registry
from pi_workflows.server.resolver import Resolver
from tests.server.clocks import FixedClock

pytestmark = pytest.mark.slow

_WORKFLOW = '''
"""Greet somebody."""
import os
from pydantic import BaseModel
from pi_workflows import Context, compute, define_workflow

class Input(BaseModel):
    name: str = "world"

@compute
def greet(ctx: Context[Input]) -> str:
    return ctx.input.name

workflow = define_workflow(
    name="greet",
    title=f"loaded by {os.getpid()}",
    input=Input,
    start="greet",
    nodes={"greet": greet},
)
'''

# Writes to whatever descriptor the answer is expected on.
_FLOOD = """
import os
while True:
    for number in range(3, 9):
        try:
            os.write(number, b"x" * 65536)
        except OSError:
            pass
"""


class Project:
    """A project with one workflow.

    Attributes:
        path: Its directory.
        resolver: What loads it.
        children: How many children there were at each change.
        empty: Set when there was none.
    """

    def __init__(self, state_dir: Path) -> None:
        """Write the workflow."""
        state = prepare(state_dir)
        self.path = state_dir.parent / "project"
        self.file = self.path / ".pi" / "workflows" / "greet_workflow.py"
        self.file.parent.mkdir(parents=True)
        self.file.write_text(_WORKFLOW)
        self.registry = state.children
        self.children: list[int] = []
        self.empty = trio.Event()
        self.resolver = Resolver(
            Registry(state.children),
            definitions=state.definitions,
            environment=dict(os.environ),
            log=ServerLog(state.log, FixedClock()),
            changed=self._changed,
        )

    def _changed(self) -> None:
        self.children.append(self.resolver.child_count)
        if not self.resolver.child_count:
            self.empty.set()

    async def resolve(self, target: str = "greet", **given: Json) -> dict[str, Json]:
        """Resolve a workflow with an input."""
        answer = await self.resolver.resolve("resolve", str(self.path), target, **given)
        assert isinstance(answer, dict)
        return answer


@asynccontextmanager
async def _project(state_dir: Path) -> AsyncGenerator[Project]:
    """Run a resolver as long as the body runs; afterwards nothing of its children is left."""
    project = Project(state_dir)
    async with trio.open_nursery() as nursery:
        await nursery.start(project.resolver.run)
        yield project
        nursery.cancel_scope.cancel()
    assert project.resolver.child_count == 0
    assert list(project.registry.iterdir()) == []


def test_a_definition_is_kept_warm(state_dir: Path) -> None:
    """The same definition is answered by the same child as long as its files are unchanged."""

    async def body() -> None:
        async with _project(state_dir) as project:
            first = await project.resolve(input={"name": "me"})
            second = await project.resolve(input={"name": "you"})
            assert first["title"] == second["title"]
            assert (first["input"], second["input"]) == ({"name": "me"}, {"name": "you"})
            project.file.write_text(_WORKFLOW + "# changed\n")
            third = await project.resolve()
            assert third["title"] != first["title"]
            assert third["workflowSource"] != first["workflowSource"]
            assert max(project.children) == 1

    trio.run(body)


def test_the_number_of_children_is_bounded(state_dir: Path) -> None:
    """However many requests come at once, and whatever they are for, few children live."""

    async def body() -> None:
        async with _project(state_dir) as project:
            for number in range(2 * RESOLVERS_MAX + 2):
                name = f"greet_{number}"
                text = _WORKFLOW.replace('name="greet"', f'name="greet-{number}"')
                project.file.with_name(f"{name}_workflow.py").write_text(text)
            async with trio.open_nursery() as nursery:
                for number in range(2 * RESOLVERS_MAX + 2):
                    nursery.start_soon(project.resolve, f"greet-{number}")
            assert RESOLVERS_MAX < max(project.children) <= 2 * RESOLVERS_MAX

    trio.run(body)


def test_workflows_are_listed(state_dir: Path) -> None:
    """A project's workflows are listed by name, with their summaries."""

    async def body() -> None:
        async with _project(state_dir) as project:
            answer = await project.resolver.list_workflows(str(project.path))
            assert isinstance(answer, dict)
            assert isinstance(answer["items"], list)
            first, *others = answer["items"]
            assert first == {
                "name": "greet",
                "path": str(project.file),
                "source": "project",
                "summary": "Greet somebody.",
            }
            assert all(isinstance(o, dict) and o["source"] == "builtin" for o in others)

    trio.run(body)


@pytest.mark.parametrize(
    ("target", "given", "code"),
    [("nobody", {}, "workflowUnknown"), ("greet", {"input": {"name": 7}}, "inputInvalid")],
)
def test_mistakes_are_problems(
    state_dir: Path, target: str, given: dict[str, Json], code: str
) -> None:
    """An unknown name or a bad input comes back as problems, and the child stays useful."""

    async def body() -> None:
        async with _project(state_dir) as project:
            with pytest.raises(ProblemsFound) as caught:
                await project.resolve(target, **given)
            assert caught.value.reason_code == code
            assert (await project.resolve())["workflowName"] == "greet"

    trio.run(body)


@pytest.mark.parametrize(
    "code",
    [
        "import time\nwhile True: time.sleep(1)\n",
        "import os\nos._exit(3)\n",
        _FLOOD,
    ],
)
def test_a_child_that_does_not_answer_is_ended(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    """A file that hangs, ends its process or floods its pipe is refused, and its child is gone."""
    monkeypatch.setattr(module, "CHILD_ANSWER_MS", 3_000)

    async def body() -> None:
        async with _project(state_dir) as project:
            project.file.write_text(code)
            with pytest.raises(Refused) as caught:
                await project.resolve()
            assert caught.value.reason_code == "resolverFailed"
            assert project.resolver.child_count == 0

    trio.run(body)


_JUDGED = """
import os, time
from pydantic import BaseModel
from pi_workflows import agent, define_workflow

class Input(BaseModel):
    how: str = "fine"

def hang(value):
    while True:
        time.sleep(1)

def judged(value):
    if value == "hang":
        hang(value)
    if value == "die":
        os._exit(3)
    return {"was": value}

workflow = define_workflow("greet", input=Input, start="ask",
    title=lambda task: hang(task) if task.how == "hang" else "fine",
    nodes={"ask": agent(prompt="?", output="anything", validate=judged)})
"""


def test_case_26_a_validator_or_a_title_that_hangs_is_ended(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is accepted and nothing is held up: the next candidate has a child of its own."""
    monkeypatch.setattr(module, "CHILD_ANSWER_MS", 2_000)

    async def body() -> None:
        async with _project(state_dir) as project:
            project.file.write_text(_JUDGED)
            found = await project.resolve(input={})
            request: dict[str, Json] = {
                "projectPath": str(project.path),
                "sourceFiles": found["sourceFiles"],
                "mounts": [{"mount": "", "source": found["workflowSource"]}],
                "definitionDigest": found["definitionDigest"],
                "nodePath": "ask",
                "kind": "agent",
                "contract": {},
            }
            for candidate in ("hang", "die"):
                with pytest.raises(Refused) as caught:
                    await project.resolver.validate({**request, "candidate": candidate}, {})
                assert caught.value.reason_code == "resolverFailed"
            given = await project.resolver.validate({**request, "candidate": "good"}, {})
            assert given == {"was": "good"}
            with pytest.raises(Refused) as caught:
                await project.resolve(input={"how": "hang"})
            assert caught.value.reason_code == "resolverFailed"

    trio.run(body)


def test_a_child_ends_with_its_tree(state_dir: Path) -> None:
    """A process that a workflow file started while it was loaded ends with the child."""

    async def body() -> None:
        mark = state_dir.parent / "pid"
        async with _project(state_dir) as project:
            start = (
                "import subprocess\n"
                "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
                f"open({str(mark)!r}, 'w').write(str(child.pid))\n"
            )
            project.file.write_text(start + _WORKFLOW.replace('"""Greet somebody."""', ""))
            await project.resolve()
            found = process.facts(int(mark.read_text()))
            assert found is not None
            assert not found.is_dead
        found = process.facts(int(mark.read_text()))
        assert found is None or found.is_dead

    trio.run(body)


def test_a_project_that_is_not_there_is_refused(state_dir: Path) -> None:
    """No child can start in a directory that does not exist."""

    async def body() -> None:
        async with _project(state_dir) as project:
            with pytest.raises(Refused) as caught:
                await project.resolver.list_workflows("/no/such/directory")
            assert caught.value.reason_code == "projectMissing"

    trio.run(body)


def test_an_idle_child_ends(state_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warm child that nobody asks for ends by itself, so that an idle server can leave."""
    monkeypatch.setattr(module, "RESOLVER_WARM_MS", 100)

    async def body() -> None:
        async with _project(state_dir) as project:
            await project.resolve()
            assert project.resolver.child_count == 1
            with trio.fail_after(10):
                await project.empty.wait()

    trio.run(body)
