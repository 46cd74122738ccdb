"""Gives more than a view holds, and asks with more than a view holds."""

from __future__ import annotations

from pydantic import BaseModel

from pi_workflows import Context, checkpoint, compute, define_workflow, edge


class Settings(BaseModel):
    """The input."""

    lines: int = 20_000


def shown(ctx: Context[Settings]) -> list[str]:
    """Return a long list."""
    return [f"item {number}" for number in range(ctx.input.lines)]


ask = checkpoint("Is that all?", run=shown)


@compute
def give(ctx: Context[Settings]) -> dict[str, object]:
    """Return a long text."""
    text = "\n".join(f"- line {number}" for number in range(ctx.input.lines))
    return {"markdown": text, "answer": ctx.output_of(ask)}


workflow = define_workflow(
    name="large",
    input=Settings,
    start="ask",
    nodes={"ask": ask, "give": give},
    edges=[edge("ask", "give")],
)
