"""The whole server with real runners: a question, an effect, and a stop in the middle of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome, Unavailable
from pi_workflows.client.blocking import Client
from pi_workflows.protocol.operations import Operation
from tests.server.servers import Running, members, report

pytestmark = pytest.mark.slow

_ASKING = '''
"""Ask a question between two steps."""
from pydantic import BaseModel
from pi_workflows import Context, checkpoint, compute, define_workflow, edge

class Nothing(BaseModel):
    pass

class Decision(BaseModel):
    count: int

@compute
def first(ctx: Context[Nothing]) -> str:
    return "asked"

ask = checkpoint(summary="How many?", output=Decision)

@compute
def last(ctx: Context[Nothing]) -> int:
    return ctx.output_of(ask).count + 1

workflow = define_workflow(
    name="asking",
    input=Nothing,
    start="first",
    nodes={"first": first, "ask": ask, "last": last},
    edges=[edge("first", "ask"), edge("ask", "last")],
)
'''

_DEPLOYING = '''
"""Do something once, which takes until a file says that it is over."""
from pathlib import Path
import trio
from pydantic import BaseModel
from pi_workflows import ActionContext, action, define_workflow, manual_effect

class Input(BaseModel):
    over: str

@action(effect=manual_effect("deploy"))
async def deploy(ctx: ActionContext[Input]) -> str:
    while not Path(ctx.input.over).exists():
        await trio.sleep(0.01)
    return "deployed"

workflow = define_workflow(
    name="deploying", input=Input, start="deploy", nodes={"deploy": deploy}
)
'''


class Project:
    """A project and the server that runs its workflows.

    Attributes:
        running: The server's processes.
        path: The project's directory.
        over: Whose existence ends the deployment.
    """

    def __init__(self, running: Running) -> None:
        """Write the workflows and start the server."""
        self.running = running
        self.path = running.directory.parent / "project"
        self.over = self.path / "over"
        workflows = self.path / ".pi" / "workflows"
        workflows.mkdir(parents=True)
        (workflows / "asking_workflow.py").write_text(_ASKING)
        (workflows / "deploying_workflow.py").write_text(_DEPLOYING)
        running.start()

    def start(self, client: Client, target: str, run_input: Json) -> None:
        """Resolve a workflow and start a run of it."""
        request: Json = {"projectPath": str(self.path), "target": target, "input": run_input}
        resolved = members(client.request(Operation.WORKFLOW_RESOLVE, request).done().receipt)
        payload: Json = {
            **resolved,
            "projectPath": str(self.path),
            "originSessionId": "local-run",
            "executionMode": "headless",
        }
        client.request(Operation.RUN_START, payload, run_id="run").done()

    def effect(self, client: Client, status: str) -> dict[str, Json]:
        """Return the run's one effect, which has this status."""
        reply = client.request(Operation.EFFECT_LIST, {"runId": "run", "status": status})
        items = members(reply.done().receipt)["items"]
        assert isinstance(items, list)
        (item,) = items
        return members(item)


@pytest.fixture
def project(running: Running) -> Project:
    """A project whose server runs."""
    return Project(running)


def _view(client: Client) -> dict[str, Json]:
    """Return the run's view."""
    return members(client.request(Operation.VIEW_RUN_GET, {}, run_id="run").done().receipt)


def _until(client: Client, is_there: Callable[[dict[str, Json]], bool]) -> dict[str, Json]:
    """Watch the run until its view is as it should be."""
    with client.watch_run("run") as feed:
        for mirror, _ in feed:
            if mirror.view is not None and is_there(mirror.view):
                return mirror.view
    raise AssertionError("the subscription ended")


def _status(view: dict[str, Json]) -> Json:
    """Return the display status of a view."""
    return members(view["display"])["status"]


def _is_applying(view: dict[str, Json]) -> bool:
    """Whether the node whose effect is waited for is the current one."""
    return members(view["state"]).get("currentNode") == "deploy"


def test_an_answer_is_judged_before_it_counts(project: Project) -> None:
    """A wrong answer is refused and the question stays; the right one finishes the same run."""
    with project.running.client() as client:
        project.start(client, "asking", {})
        view = _until(client, lambda view: _status(view) == "waiting")
        request = members(members(view["state"])["interaction"])
        revision = request["revision"]
        assert isinstance(revision, int)

        def answer(value: Json, key: str, expected: int = revision) -> tuple[Outcome, Json]:
            payload: Json = {
                "requestId": request["requestId"],
                "submissionId": f"submission-{key}",
                "input": value,
            }
            reply = client.request(
                Operation.CHECKPOINT_ANSWER,
                payload,
                run_id="run",
                expected_revision=expected,
                key=key,
            )
            return reply.outcome, members(reply.receipt).get("code")

        assert answer({"count": "many"}, "a") == (Outcome.REJECTED, "answerInvalid")
        assert answer({"count": 41}, "b", revision + 1) == (Outcome.CONFLICT, "staleRevision")
        assert _status(_view(client)) == "waiting"
        assert answer({"count": 41}, "c") == (Outcome.ACCEPTED, None)
        assert answer({"count": 41}, "c") == (Outcome.ADOPTED, None)
        assert answer({"count": 7}, "d") == (Outcome.CONFLICT, "alreadyAnswered")
        _until(client, lambda view: _status(view) == "completed")
        assert members(_view(client)["state"])["finalOutput"] == 42


def test_a_changed_file_cannot_judge(project: Project) -> None:
    """An answer is not judged by other code than the run's: the question stays open."""
    with project.running.client() as client:
        project.start(client, "asking", {})
        view = _until(client, lambda view: _status(view) == "waiting")
        request = members(members(view["state"])["interaction"])
        (project.path / ".pi" / "workflows" / "asking_workflow.py").write_text(_ASKING + "#")
        payload: Json = {
            "requestId": request["requestId"],
            "submissionId": "submission",
            "input": {"count": 41},
        }
        reply = client.request(Operation.CHECKPOINT_ANSWER, payload, run_id="run")
        assert reply.outcome is Outcome.REJECTED
        assert _status(_view(client)) == "waiting"


def _applying(project: Project, client: Client) -> dict[str, Json]:
    """Start the deployment and return its effect, which is under way."""
    project.start(client, "deploying", {"over": str(project.over)})
    _until(client, _is_applying)
    subscription = client.watch("run")
    while True:
        reply = client.request(Operation.EFFECT_LIST, {"runId": "run", "status": "applying"})
        if members(reply.done().receipt)["total"] == 1:
            client.unwatch(subscription)
            return project.effect(client, "applying")
        client.next_event(subscription)


def test_a_stop_waits_for_an_effect(project: Project) -> None:
    """An effect that applies may finish; meanwhile nothing is begun, and the run goes on later."""
    with project.running.client() as client, project.running.client() as other:
        _applying(project, client)
        stopped = client.request(Operation.SERVER_STOP, {}).done().receipt
        assert stopped == {"stopping": True, "applyingManualRuns": ["run"]}
        assert report(other)["state"] == "stopping"
        late = other.request(Operation.RUN_LIST, {})
        assert late.outcome is Outcome.UNAVAILABLE
        with pytest.raises(Unavailable) as caught:
            late.done()
        assert caught.value.reason_code == "stopping"
        project.over.touch()
    project.running.wait()
    project.running.start()
    with project.running.client() as client:
        _until(client, lambda view: _status(view) == "completed")
        assert project.effect(client, "applied")["attempts"] == 1


def test_a_stop_in_a_hurry_leaves_a_manual_effect_to_a_person(project: Project) -> None:
    """A stop that does not wait leaves the effect ambiguous; a person's word lets the run go on."""
    with project.running.client() as client:
        _applying(project, client)
        client.request(Operation.SERVER_STOP, {"graceMs": 60_000}).done()
        client.request(Operation.SERVER_STOP, {"graceMs": 0}).done()
    project.running.wait()
    project.running.start()
    with project.running.client() as client:
        view = _view(client)
        assert (_status(view), members(view["queue"])["errorCode"]) == (
            "ambiguous",
            "effectAmbiguous",
        )
        effect = project.effect(client, "ambiguous")
        payload: Json = {
            "effectId": effect["effectId"],
            "attemptNumber": effect["attempts"],
            "action": "confirm",
            "evidence": "I saw it.",
        }
        resolved = client.request(Operation.EFFECT_RESOLVE, payload, key="k")
        assert resolved.outcome is Outcome.ACCEPTED
        assert client.request(Operation.EFFECT_RESOLVE, payload, key="k").outcome is Outcome.ADOPTED
        _until(client, lambda view: _status(view) == "completed")


def test_nothing_is_left_of_a_cancelled_run(project: Project) -> None:
    """A cancelled run is over at once, and so is its runner."""
    with project.running.client() as client:
        _applying(project, client)
        client.request(Operation.RUN_CANCEL, {}, run_id="run").done()
        assert _status(_view(client)) == "ambiguous" or _status(_view(client)) == "cancelled"
        client.request(Operation.SERVER_STOP, {}).done()
    project.running.wait()
    children = project.running.directory / "host" / "children"
    assert list(Path(children).iterdir()) == []
