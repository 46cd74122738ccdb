"""Goes round as often as it is told."""

from __future__ import annotations

from pydantic import BaseModel

from pi_workflows import Context, compute, define_workflow, switch


class Settings(BaseModel):
    """The input."""

    rounds: int = 3


@compute
def turn(ctx: Context[Settings]) -> dict[str, str]:
    """Say whether another round is due."""
    return {"again": "yes" if ctx.visit < ctx.input.rounds else "no"}


@compute
def stop(_ctx: Context[Settings]) -> str:
    """End."""
    return "round"


workflow = define_workflow(
    name="loop",
    input=Settings,
    start="turn",
    max_steps=1_000,
    nodes={"turn": turn, "stop": stop},
    edges=[switch("turn", on="$.again", cases={"yes": "turn", "no": "stop"})],
)
