"""The whole server with settings: opened, changed by rule, read by nodes, chosen by anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.client.blocking import Client
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from tests.server.servers import Running, members

pytestmark = pytest.mark.slow

_FILE = '''
"""Ask, then choose by the settings; write while a file is not there."""
from pydantic import BaseModel
from pi_workflows import *

class Input(BaseModel):
    place: str

class Prefs(BaseModel):
    merge: bool
    labels: list[str] = []
    secretive: bool = False

def no_model_merge(change: SettingsChange[Prefs]) -> None:
    if "forbidden" in change.after.labels:
        raise ValueError("no such label")

settings = workflow_settings(Prefs, initial=lambda given: Prefs(merge=False),
    paths=[allow("/merge", read=["session", "control"], replace=["human", "control"]),
           allow("/labels", add=["control"], remove=["control"], replace=["control"])],
    validate_change=no_model_merge)

@compute
def read(ctx: Context[Input]):
    return [ctx.settings.merge, ctx.settings_scope_id, ctx.settings_change_number]

def wait(ctx: ActionContext[Input]) -> Command:
    there = f"while [ ! -e {ctx.input.place}/go ]; do sleep 0.02; done"
    return Command(["sh", "-c", f"echo ready; {there}"])

@settings_route
def choose(ctx: Context[Input]):
    route = "merge" if ctx.settings.merge else "leave"
    return {"route": route, "number": ctx.settings_change_number}

@compute
def merge(ctx: Context[Input]):
    return {"read": ctx.outputs["read"], "chosen": ctx.outputs["choose"],
            "now": ctx.settings.model_dump()}

@compute
def leave(ctx: Context[Input]):
    return "left"

workflow = define_workflow("prefers", input=Input, start="read", settings=settings,
    nodes={"read": read, "wait": shell(wait, effect=idempotent_effect("wait"),
                 updates=lambda line: Progress(label="ready")),
           "choose": choose, "merge": merge, "leave": leave},
    edges=[edge("read", "wait"), edge("wait", "choose"),
           switch("choose", on="$.route", cases={"merge": "merge", "leave": "leave"})])
'''
SCOPE = "run:$root:1"


def _until(client: Client, is_there: Callable[[dict[str, Json]], bool]) -> dict[str, Json]:
    """Watch the run until its view is as it should be."""
    with client.watch_run("run") as feed:
        for mirror, _ in feed:
            if mirror.view is not None and is_there(mirror.view):
                return mirror.view
            if mirror.view is not None:
                shown = members(mirror.view["display"])
                assert shown["status"] != "failed", shown
                assert members(mirror.view["queue"])["errorCode"] is None, shown
    raise AssertionError("the subscription ended")


def _bound(view: dict[str, Json]) -> dict[str, Json]:
    """Return the change that each step of a view was bound to."""
    steps = members(view["state"])["steps"]
    assert isinstance(steps, list)
    return {str(step["nodeId"]): step["settingsChangeNumber"] for step in map(members, steps)}


def _change(client: Client, *operations: Json, **more: Json) -> Reply:
    """Ask for a change of the run's settings."""
    patch: list[Json] = list(operations)
    payload: dict[str, Json] = {"patch": patch, **more}
    return client.request(Operation.RUN_CHANGE_SETTINGS, payload, run_id="run")


@pytest.fixture
def project(running: Running) -> Path:
    """A project with the workflow, whose run waits inside its second node."""
    path = running.directory.parent / "project"
    workflows = path / ".pi" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "prefers_workflow.py").write_text(_FILE)
    running.start()
    with running.client() as client:
        request: Json = {
            "projectPath": str(path),
            "target": "prefers",
            "input": {"place": str(path)},
        }
        resolved = members(client.request(Operation.WORKFLOW_RESOLVE, request).done().receipt)
        payload: Json = {
            **resolved,
            "projectPath": str(path),
            "originSessionId": "local-run",
            "executionMode": "headless",
        }
        client.request(Operation.RUN_START, payload, run_id="run").done()
        _until(client, lambda view: view["updateTotal"] == 1)
    return path


def test_settings_from_their_beginning_to_their_use(running: Running, project: Path) -> None:
    """Rules and code have their say; a node keeps its value, the next one has the new one."""
    turn: Json = {"op": "replace", "path": "/merge", "value": True}
    with running.client() as client:
        refusals: list[tuple[list[Json], str, dict[str, Json]]] = [
            ([{"op": "replace", "path": "/secretive", "value": True}], "settingsDenied", {}),
            ([{"op": "add", "path": "/merge/x", "value": 1}], "settingsDenied", {}),
            ([{"op": "add", "path": "/labels/-", "value": "forbidden"}], "settingsInvalid", {}),
            ([{"op": "replace", "path": "/merge", "value": "yes"}], "settingsInvalid", {}),
            ([{"op": "test", "path": "/merge", "value": True}], "patchInvalid", {}),
            ([turn], "settingsChanged", {"expectedChangeNumber": 3}),
            ([turn], "settingsMissing", {"scopeId": "run:$root:2"}),
        ]
        for operations, code, more in refusals:
            refused = _change(client, *operations, **more)
            assert members(refused.receipt)["code"] == code, (operations, refused.error)
        added = _change(client, {"op": "add", "path": "/labels/-", "value": "a"}).done()
        assert added.receipt == {
            "runId": "run",
            "scopeId": SCOPE,
            "changeNumber": 1,
            "adopted": False,
        }
        assert (
            members(_change(client, turn, expectedChangeNumber=1).done().receipt)["changeNumber"]
            == 2
        )
        view = members(client.request(Operation.VIEW_RUN_GET, {}, run_id="run").done().receipt)
        scopes = view["settingsScopes"]
        assert isinstance(scopes, list)
        shown = members(scopes[0])
        assert (shown["scopeId"], shown["changeNumber"]) == (SCOPE, 2)
        assert shown["value"] == {"merge": True, "labels": ["a"], "secretive": False}
        (project / "go").touch()
        _until(client, lambda view: members(view["display"])["status"] == "completed")
        view = members(client.request(Operation.VIEW_RUN_GET, {}, run_id="run").done().receipt)
        assert members(view["state"])["finalOutput"] == {
            "read": [False, SCOPE, 0],
            "chosen": {"route": "merge", "number": 2},
            "now": {"merge": True, "labels": ["a"], "secretive": False},
        }
        assert _bound(view) == {"read": 0, "wait": 0, "choose": 2, "merge": 2}
        assert members(_change(client, turn).receipt)["code"] == "runTerminal"
        page = client.request(Operation.VIEW_PAGE, {"kind": "settings"}, run_id="run").done()
        assert members(page.receipt)["total"] == 1
        verified = members(client.request(Operation.STATE_VERIFY, {}).done().receipt)
        assert verified["valid"] is True, verified


def test_a_resumed_run_has_the_settings_of_now(running: Running, project: Path) -> None:
    """Paused and changed, it goes on with what was changed; nothing opens twice."""
    with running.client() as client:
        client.request(Operation.RUN_PAUSE, {}, run_id="run").done()
        assert _change(client, {"op": "replace", "path": "/merge", "value": True}).outcome is (
            Outcome.ACCEPTED
        )
        (project / "go").touch()
        client.request(Operation.RUN_RESUME, {}, run_id="run").done()
        _until(client, lambda view: members(view["display"])["status"] == "completed")
        view = members(client.request(Operation.VIEW_RUN_GET, {}, run_id="run").done().receipt)
        assert view["settingsTotal"] == 1
        assert _bound(view) == {"read": 0, "wait": 1, "choose": 1, "merge": 1}
