"""Starts a tree of processes, says that it stands, and never ends by itself."""

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
)

TREE = """
sleep 1000 &
sh -c 'sleep 1000 & setsid sleep 1000 & wait' &
test -e "$1" && exit 0
echo standing >"$2"
wait
"""


class Settings(BaseModel):
    """The input.

    Attributes:
        done: While this file is missing the tree stands; when it is there the step is done.
        gate: A named pipe that is told when the tree stands.
    """

    done: str
    gate: str


grow = shell(
    lambda ctx: Command(["sh", "-c", TREE, "sh", ctx.input.done, ctx.input.gate]),
    effect=idempotent_effect("tree.grow"),
)


@compute
def count(ctx: Context[Settings]) -> str:
    """Say that the tree is gone."""
    result: ShellResult = ctx.output_of(grow)
    return f"ended with {result.exit_code}"


workflow = define_workflow(
    name="tree",
    input=Settings,
    start="grow",
    nodes={"grow": grow, "count": count},
    edges=[edge("grow", "count")],
)
