"""Has three mistakes: an unknown start, an edge to nowhere, an output that is never given."""

from __future__ import annotations

from pydantic import BaseModel

from pi_workflows import Context, compute, define_workflow, edge


class Settings(BaseModel):
    """The input."""


@compute
def one(_ctx: Context[Settings]) -> str:
    """Return a word."""
    return "one"


workflow = define_workflow(
    name="Mistaken",
    input=Settings,
    start="first",
    nodes={"one": one},
    edges=[edge("one", "two")],
)
