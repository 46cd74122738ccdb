"""Releases what a person has approved, exactly as it was shown."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from pi_workflows import (
    Context,
    DecisionRequest,
    action,
    choice,
    compute,
    define_workflow,
    edge,
    human_choices,
    human_decision,
    human_decision_edge,
    idempotent_effect,
    present,
    text_input,
)


class Release(BaseModel):
    """What is released, and the file whose presence changes it after the approval."""

    version: str = "v1"
    drift: str = ""


@compute
def plan(ctx: Context[Release]) -> dict[str, Any]:
    """Say what is to be done."""
    return {"tag": ctx.input.version}


def ask(ctx: Context[Release]) -> DecisionRequest:
    """Show it."""
    shown = wanted(ctx)
    return DecisionRequest(
        title=f"Release {shown['tag']}?",
        subject=shown,
        presentation=present(f"The tag {shown['tag']} is pushed.").bullets("one", "two"),
    )


def wanted(ctx: Context[Release]) -> dict[str, Any]:
    """Say what is asked for now."""
    drift = ctx.input.drift
    tag = ctx.outputs["plan"]["tag"]
    return {"tag": f"{tag}-hotfix" if drift and Path(drift).exists() else tag}


approve = human_decision(
    audience="operator",
    choices=human_choices(
        go=choice("Release it"),
        stop=choice("Leave it"),
        replan=choice("Plan again", input=text_input("how", prompt="What should change?")),
    ),
    request=ask,
)


@action(effect=idempotent_effect("release"), request=wanted, approved_by="approve")
def release(ctx: Context[Release]) -> dict[str, Any]:
    """Do what was approved."""
    return {"released": wanted(ctx)["tag"]}


@compute
def leave(ctx: Context[Release]) -> dict[str, Any]:
    """Do nothing."""
    return {"released": None, "left": ctx.input.version}


workflow = define_workflow(
    name="decides",
    input=Release,
    start="plan",
    nodes={"plan": plan, "approve": approve, "release": release, "leave": leave},
    edges=[
        edge("plan", "approve"),
        human_decision_edge("approve", cases={"go": "release", "stop": "leave", "replan": "plan"}),
    ],
)
