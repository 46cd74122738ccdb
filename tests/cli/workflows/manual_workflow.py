"""Does something that must not be repeated, and is cut off in the middle when its gate says so."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel

from pi_workflows import (
    Command,
    Context,
    ShellResult,
    compute,
    define_workflow,
    edge,
    manual_effect,
    shell,
)


class Settings(BaseModel):
    """The input."""

    gate: str


def said(result: ShellResult) -> object:
    """Return what was said; a person's confirmation stands in its place."""
    return {"said": result.stdout}


pay = shell(
    lambda ctx: Command(["cat", ctx.input.gate]),
    effect=manual_effect("invoice.pay"),
    parse=said,
    timeout=timedelta(milliseconds=300),
)


@compute
def book(ctx: Context[Settings]) -> str:
    """Book it."""
    return f"booked {ctx.input.gate}"


workflow = define_workflow(
    name="manual",
    input=Settings,
    start="pay",
    nodes={"pay": pay, "book": book},
    edges=[edge("pay", "book")],
)
