"""Fails with words that a terminal would obey."""

from __future__ import annotations

from pydantic import BaseModel

from pi_workflows import Context, compute, define_workflow


class Settings(BaseModel):
    """The input."""

    message: str = "it broke"


@compute
def crash(ctx: Context[Settings]) -> str:
    """Fail."""
    raise ValueError(ctx.input.message)


workflow = define_workflow(
    name="fails", input=Settings, start="crash", nodes={"crash": crash}, edges=[]
)
