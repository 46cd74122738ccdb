"""Has more nodes than a view shows, leads past most of them, and tries again what failed there."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel

from pi_workflows import (
    ActionContext,
    Command,
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
        gate: A pipe that is waited at.
        tries: A file that holds one letter for each try.
    """

    gate: str
    tries: str


wait = shell(
    lambda ctx: Command(["cat", ctx.input.gate]),
    effect=idempotent_effect("gate.read"),
    parse=lambda _result: {"way": "far"},
)
idle = compute(lambda _ctx: None, status_detail="d" * 200)


@action(
    effect=idempotent_effect("service.call"),
    retry=Retry(max_attempts=2, on=("failed",), delay=timedelta(milliseconds=10)),
)
def far(ctx: ActionContext[Settings]) -> str:
    """Work at the second try."""
    with Path(ctx.input.tries).open("a") as file:
        file.write("x")
    if len(Path(ctx.input.tries).read_text()) < 2:
        message = "the first try failed"
        raise ConnectionError(message)
    return "there"


names = [f"idle-{index:03}" for index in range(600)]
workflow = define_workflow(
    name="wide",
    input=Settings,
    start="wait",
    nodes={"wait": wait, **dict.fromkeys(names, idle), "far": far},
    edges=[
        switch("wait", on="$.way", cases={"near": names[0], "far": "far"}),
        *(edge(here, there) for here, there in pairwise([*names, "far"])),
    ],
)
