"""The whole server with included workflows: twice, in a loop, lost in the middle, and changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.client.blocking import Client
from pi_workflows.protocol.operations import Operation
from tests.server.servers import Running, members

pytestmark = pytest.mark.slow

_INNER = '''
"""Write a line, and hold until a file says to go on."""
from pydantic import BaseModel
from pi_workflows import *

class Line(BaseModel):
    tag: str
    place: str
    hold: bool = False

def command(ctx: ActionContext[Line]) -> Command:
    line = ctx.input
    wait = f"while [ ! -e {line.place}/go ]; do sleep 0.02; done" if line.hold else "true"
    return Command(["sh", "-c", f"echo {line.tag} >> {line.place}/lines; {wait}"])

class Written(BaseModel):
    tag: str
    earlier: list[str]

@compute
def report(ctx: Context[Line]) -> Written:
    return Written(tag=ctx.input.tag, earlier=sorted(ctx.outputs))

workflow = define_workflow("inner", input=Line, start="write", max_steps=2, contract_id="inner.v1",
    nodes={"write": shell(command, effect=idempotent_effect("line")), "report": report},
    edges=[edge("write", "report")], exits={"written": exit("report", output=Written)})
'''

_OUTER = '''
"""Include one workflow twice, in a loop of two rounds."""
from pydantic import BaseModel
from pi_workflows import *

class Input(BaseModel):
    place: str

def line(name, hold):
    def made(ctx):
        number = ctx.visit
        return {"tag": f"{name}{number}", "place": ctx.input.place, "hold": hold(ctx)}
    return include("inner", input=made, contract_id="inner.v1")

@compute
def round(ctx: Context[Input]) -> int:
    return ctx.visit

@compute
def last(ctx: Context[Input]):
    return {name: ctx.outputs[name]["output"] for name in ("a", "b")}

workflow = define_workflow("outer", input=Input, start="a", nodes={"round": round, "last": last},
    includes={"a": line("a", lambda ctx: "b" in ctx.outputs), "b": line("b", lambda ctx: False)},
    edges=[edge("a.written", "b"), edge("b.written", "round"),
           switch("round", on="$", cases={1: "a", 2: "last"})])
'''


def _view(client: Client) -> dict[str, Json]:
    """Return the run's view."""
    return members(client.request(Operation.VIEW_RUN_GET, {}, run_id="run").done().receipt)


def _until(client: Client, is_there: Callable[[dict[str, Json]], bool]) -> None:
    """Watch the run until its view is as it should be."""
    with client.watch_run("run") as feed:
        for mirror, _ in feed:
            if mirror.view is not None and is_there(mirror.view):
                return
    raise AssertionError("the subscription ended")


def _status(view: dict[str, Json]) -> Json:
    """Return the display status of a view."""
    return members(view["display"])["status"]


def _resolved(client: Client, project: Path) -> dict[str, Json]:
    """Return what the resolver answers about the outer workflow."""
    request: Json = {
        "projectPath": str(project),
        "target": "outer",
        "input": {"place": str(project)},
    }
    return members(client.request(Operation.WORKFLOW_RESOLVE, request).done().receipt)


def _paused_inside(client: Client, project: Path) -> None:
    """Start the run and pause it in the second invocation of the first mount."""
    payload: Json = {
        **_resolved(client, project),
        "projectPath": str(project),
        "originSessionId": "local-run",
        "executionMode": "headless",
    }
    client.request(Operation.RUN_START, payload, run_id="run").done()
    lines = project / "lines"
    _until(
        client,
        lambda view: (
            members(view["state"]).get("currentNode") == "a/write"
            and lines.exists()
            and lines.read_text().split()[-1] == "b1"
        ),
    )
    client.request(Operation.RUN_PAUSE, {}, run_id="run").done()


@pytest.fixture
def project(running: Running) -> Path:
    """A project with both workflows; its server runs."""
    path = running.directory.parent / "project"
    workflows = path / ".pi" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "outer_workflow.py").write_text(_OUTER)
    (workflows / "inner_workflow.py").write_text(_INNER)
    running.start()
    return path


def test_a_run_goes_on_inside_an_included_workflow(running: Running, project: Path) -> None:
    """A runner that takes over makes the same input again, and each invocation has its effect."""
    with running.client() as client:
        _paused_inside(client, project)
        (project / "go").touch()
        client.request(Operation.RUN_RESUME, {}, run_id="run").done()
        _until(client, lambda view: _status(view) == "completed")
        earlier: Json = ["write"]
        assert members(_view(client)["state"])["finalOutput"] == {
            "a": {"tag": "a2", "earlier": earlier},
            "b": {"tag": "b2", "earlier": earlier},
        }
        listed = client.request(Operation.EFFECT_LIST, {"runId": "run", "status": "applied"})
        effects = _listed(members(listed.done().receipt)["items"])
        paths = sorted((str(effect["nodePath"]), effect["visit"]) for effect in effects)
        assert paths == [("a/write", 1), ("a/write", 2), ("b/write", 1), ("b/write", 2)]
        verified = members(client.request(Operation.STATE_VERIFY, {}).done().receipt)
        assert verified["valid"] is True, verified
    tags = (project / "lines").read_text().split()
    assert list(dict.fromkeys(tags)) == ["a1", "b1", "a2", "b2"]


def test_case_18_a_changed_included_file_stops_a_run_before_anything_changes(
    running: Running, project: Path
) -> None:
    """Only the child's file is another one: resume is refused, and the run stands as it stood."""
    inner = project / ".pi" / "workflows" / "inner_workflow.py"
    with running.client() as client:
        _paused_inside(client, project)
        before = _view(client)
        inner.write_text(_INNER + "#")
        reply = client.request(Operation.RUN_RESUME, {}, run_id="run")
        assert reply.outcome is Outcome.REJECTED
        assert members(reply.receipt)["code"] == "workflowSourceChanged"
        assert str(inner) in str(reply.error)
        assert _view(client) == before
        inner.write_text(_INNER)
        (project / "go").touch()
        client.request(Operation.RUN_RESUME, {}, run_id="run", key="again").done()
        _until(client, lambda view: _status(view) == "completed")


def test_a_start_names_the_source_of_every_mount(running: Running, project: Path) -> None:
    """What a client sends about mounts must be what the definition includes."""
    with running.client() as client:
        resolved = _resolved(client, project)
        a, b = _listed(resolved["mounts"])
        files = _listed(resolved["sourceFiles"])
        changed: Json = {**a, "source": {**members(a["source"]), "revision": "0" * 64}}
        moved: Json = {**b, "source": {**members(b["source"]), "ref": "/other.py"}}
        cases: list[tuple[str, Json, str]] = [
            ("mounts", None, "mounts"),
            ("mounts", [b, a], "mounts"),
            ("sourceFiles", [*files[:-1]], "sourceFiles"),
            ("mounts", [changed, b], "mounts.a.revision"),
            ("mounts", [a, moved], "mounts.b.ref"),
        ]
        for member, value, field in cases:
            payload: dict[str, Json] = {
                **resolved,
                "projectPath": str(project),
                "originSessionId": "local-run",
                "executionMode": "headless",
                member: value,
            }
            if value is None:
                del payload[member]
            reply = client.request(Operation.RUN_START, payload, run_id="run", key=field)
            assert reply.outcome is Outcome.REJECTED
            receipt = members(reply.receipt)
            assert (receipt["code"], receipt["field"]) == ("definitionMismatch", field)


def _listed(value: Json) -> list[dict[str, Json]]:
    """Return a list of objects."""
    assert isinstance(value, list)
    return [members(item) for item in value]
