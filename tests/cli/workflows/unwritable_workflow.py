"""Returns something that JSON cannot hold."""

from __future__ import annotations

from pydantic import BaseModel

from pi_workflows import Context, compute, define_workflow


class Settings(BaseModel):
    """The input."""


@compute
def collect(_ctx: Context[Settings]) -> object:
    """Return a set."""
    return {"words": {"a", "b"}}


workflow = define_workflow(
    name="unwritable", input=Settings, start="collect", nodes={"collect": collect}, edges=[]
)
