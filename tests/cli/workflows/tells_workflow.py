"""Tells how far it is."""

from __future__ import annotations

from pydantic import BaseModel

from pi_workflows import Context, Progress, compute, define_workflow


class Settings(BaseModel):
    """The input."""

    files: int = 3


@compute
def count(ctx: Context[Settings]) -> int:
    """Count, and say so."""
    for done in range(ctx.input.files + 1):
        progress = Progress(completed=done, total=ctx.input.files, unit="files")
        ctx.publish_update_from_thread(progress, key="files")
    ctx.publish_update_from_thread(Progress(phase="tidy\x1b[2J"), key="rest")
    return ctx.input.files


workflow = define_workflow(
    name="tells", input=Settings, start="count", nodes={"count": count}, edges=[]
)
