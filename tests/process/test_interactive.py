"""A run that a Pi session works on, over the real socket, by a session that the test plays."""

from __future__ import annotations

import os

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from tests.process.installation import Installation, text_at
from tests.process.scripted_session import ScriptedSession, Told, receipt_of

SESSION = "session-1"
WORKFLOW = """
from typing import Literal

from pi_workflows import (
    agent, assistant_message, compute, decision, decision_edge, define_workflow, edge, notify,
)
from pydantic import BaseModel, ConfigDict


class Task(BaseModel):
    task: str


class Review(BaseModel):
    model_config = ConfigDict(extra="forbid")
    route: Literal["clean", "issues"]
    reason: str


review = agent(prompt=lambda ctx: f"Review: {ctx.input.task}", output=Review)
say = agent(
    prompt=lambda ctx: f"Explain: {ctx.output_of(review).reason}",
    output=assistant_message(max_chars=200),
)
tell = notify(lambda ctx: f"Explained: {ctx.output_of(say)}", kind="progress")
pick = decision(choices=("y", "n"), question=lambda ctx: "Same plan?")


@compute
def finish(ctx):
    return {"why": ctx.output_of(review).reason, "said": ctx.output_of(say)}


workflow = define_workflow(
    name="interactive", input=Task, start="review",
    nodes={"review": review, "say": say, "tell": tell, "pick": pick, "finish": finish},
    edges=[
        edge("review", "say"), edge("say", "tell"), edge("tell", "pick"),
        decision_edge("pick", cases={"y": "finish", "n": "review"}),
    ],
)
"""


def start(installation: Installation, run_id: str = "run-1") -> None:
    """Start the workflow as an interactive run of the session."""
    file = installation.write("interactive", WORKFLOW)
    target: dict[str, Json] = {
        "projectPath": str(installation.project),
        "target": str(file),
        "input": {"task": "the report"},
    }
    resolved = receipt_of(installation.request("workflow.resolve", target).done())
    payload: dict[str, Json] = {
        **resolved,
        "projectPath": str(installation.project),
        "originSessionId": SESSION,
        "executionMode": "interactive",
        "launchOptions": {"environment": {"PATH": os.environ["PATH"]}},
    }
    assert installation.request("run.start", payload, run_id=run_id).is_done


def model(session: ScriptedSession, told: Told) -> str:
    """Do a step as a model would: its first review is wrong, and it corrects itself."""
    if told.kind == "terminal":
        return "completed"
    assert told.interaction is not None, told
    node = told.interaction["nodeId"]
    number = len(session.told)
    if node == "review":
        wrong = session.submit(told, {"route": "maybe", "reason": "?"}, f"wrong-{number}")
        assert wrong.outcome is Outcome.REJECTED
        assert "route" in str(receipt_of(wrong)["receipt"])
        right = session.submit(
            told, '```json\n{"route": "clean", "reason": "fine"}\n```', f"r-{number}"
        )
        assert right.outcome is Outcome.ACCEPTED
    elif node == "say":
        assert session.say(told, "It is fine.", f"said-{number}").outcome is Outcome.ACCEPTED
    else:
        assert session.submit(told, {"route": "y"}, f"pick-{number}").outcome is Outcome.ACCEPTED
    return "completed"


def is_over(view: dict[str, Json]) -> bool:
    """Whether the session has looked at the run's end."""
    run, message = view["run"], view["workflowMessage"]
    return (
        isinstance(run, dict)
        and text_at(run, "display", "status") == "completed"
        and isinstance(message, dict)
        and (message["kind"], message["status"]) == ("terminal", "sent")
        and view["openWorkflowTurn"] is None
    )


@pytest.mark.slow
def test_a_session_takes_its_runs_steps(installation: Installation) -> None:
    """Five steps, a rejected and a corrected answer, each message told once, the end reviewed."""
    installation.start()
    start(installation)
    session = ScriptedSession(installation, SESSION, model)
    session.serve(is_over)
    assert [told.kind for told in session.told] == [
        "step",
        "step",
        "notification",
        "step",
        "terminal",
    ]
    assert session.told[2].text == "Explained: It is fine."
    view = installation.view("run-1")
    state = view["state"]
    assert isinstance(state, dict)
    assert state["finalOutput"] == {"why": "fine", "said": "It is fine."}
    installation.stop()
    installation.assert_sound()


@pytest.mark.slow
def test_a_session_outlives_its_server(installation: Installation) -> None:
    """SIGKILL of the server in the middle of every turn: nothing is told twice, nothing is lost."""
    installation.start()
    start(installation)
    killed: list[str] = []

    def interrupted(session: ScriptedSession, told: Told) -> str:
        if told.kind != "terminal":
            killed.append(told.message_id)
            installation.kill_server()
            installation.start()
        return model(session, told)

    session = ScriptedSession(installation, SESSION, interrupted)
    session.serve(is_over)
    kinds = [told.kind for told in session.told]
    assert kinds == ["step", "step", "notification", "step", "terminal"]
    assert len({told.message_id for told in session.told}) == len(kinds)
    assert len(killed) == 3
    assert sum(each.startswith("response-") for each in session.branch) == session.turns
    installation.stop()
    installation.assert_sound()
