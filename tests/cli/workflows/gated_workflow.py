"""Waits at a gate: a named pipe that the test opens by writing a word into it."""

from __future__ import annotations

from pydantic import BaseModel

from pi_workflows import (
    Command,
    Context,
    ShellResult,
    compute,
    define_workflow,
    edge,
    idempotent_effect,
    shell,
    switch,
)


class Settings(BaseModel):
    """The input."""

    gate: str


def word(result: ShellResult) -> str:
    """Return what came through the gate."""
    return result.stdout.strip()


wait = shell(
    lambda ctx: Command(["cat", ctx.input.gate]),
    effect=idempotent_effect("gate.read"),
    parse=word,
    status_detail="waiting at the gate",
)


@compute
def check(ctx: Context[Settings]) -> str:
    """Fail if the word says so."""
    if ctx.output_of(wait) == "fail":
        message = "the word was fail"
        raise ValueError(message)
    return "fine"


@compute
def mend(ctx: Context[Settings]) -> str:
    """Put it right."""
    return f"mended {ctx.output_of(wait)}"


workflow = define_workflow(
    name="gated",
    input=Settings,
    start="wait",
    nodes={"wait": wait, "check": check, "mend": mend},
    edges=[
        edge("wait", "check"),
        switch("check", on="$result.outcome", cases={"ok": "mend", "failed": "mend"}),
    ],
)
