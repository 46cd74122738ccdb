"""Fails twice before it works, times out on the way, and may go round too often."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel

from pi_workflows import (
    ActionContext,
    Command,
    Context,
    Retry,
    action,
    compute,
    define_workflow,
    edge,
    idempotent_effect,
    shell,
    switch,
)


class Settings(BaseModel):
    """The input.

    Attributes:
        tries: A file that holds one letter for each try.
        rounds: How often the loop goes round; the run may take ten steps in all.
    """

    tries: str
    rounds: int = 1


@action(
    effect=idempotent_effect("service.call"),
    retry=Retry(max_attempts=3, on=("failed",), delay=timedelta(milliseconds=10)),
)
def call(ctx: ActionContext[Settings]) -> int:
    """Work at the third try."""
    with Path(ctx.input.tries).open("a") as file:
        file.write("x")
    count = len(Path(ctx.input.tries).read_text())
    if count < 3:
        message = f"try {count} failed"
        raise ConnectionError(message)
    return count


hang = shell(
    lambda _ctx: Command(["sleep", "1000"]),
    effect=idempotent_effect("sleep"),
    timeout=timedelta(milliseconds=200),
)


@compute
def turn(ctx: Context[Settings]) -> dict[str, str]:
    """Say whether another round is due."""
    return {"again": "yes" if ctx.visit < ctx.input.rounds else "no"}


@compute
def end(ctx: Context[Settings]) -> dict[str, object]:
    """Tell what happened."""
    return {"tries": ctx.output_of(call), "hang": ctx.results["hang"].outcome}


workflow = define_workflow(
    name="patient",
    input=Settings,
    start="call",
    max_steps=10,
    nodes={"call": call, "hang": hang, "turn": turn, "end": end},
    edges=[
        edge("call", "hang"),
        switch("hang", on="$result.outcome", cases={"ok": "end", "timed_out": "turn"}),
        switch("turn", on="$.again", cases={"yes": "turn", "no": "end"}),
    ],
)
