"""Asks a person, and ends with the answer."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from pi_workflows import Context, checkpoint, compute, define_workflow, edge


class Settings(BaseModel):
    """The input."""

    question: str = "Ship it?"


class Answer(BaseModel):
    """The answer."""

    model_config = ConfigDict(extra="forbid")

    decision: Literal["ship", "hold"]
    note: str = ""


def shown(ctx: Context[Settings]) -> dict[str, object]:
    """Show the question's subject."""
    return {"question": ctx.input.question, "builds": [{"name": "linux", "ok": True}]}


ask = checkpoint("Should it be shipped?", output=Answer, run=shown)


@compute
def conclude(ctx: Context[Settings]) -> dict[str, object]:
    """Return the decision."""
    answer = ctx.output_of(ask)
    return {"decision": answer.decision, "note": answer.note}


workflow = define_workflow(
    name="asks",
    input=Settings,
    start="ask",
    nodes={"ask": ask, "conclude": conclude},
    edges=[edge("ask", "conclude")],
)
