"""A workflow file is typed: mistakes are found before it is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WORKFLOW = """
from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import BaseModel

from pi_workflows import (
    ActionContext, Command, Context, Progress, Retry, ShellResult, action, checkpoint, compute,
    define_workflow, edge, idempotent_effect, manual_effect, shell, switch,
)

class Task(BaseModel):
    repo: str

class Review(BaseModel):
    route: Literal["clean", "issues"]

class Answer(BaseModel):
    go_on: bool

status = shell(
    lambda ctx: Command(["git", "status", "--porcelain"], cwd=ctx.input.repo),
    effect=idempotent_effect("repo.read"),
    parse=lambda result: {"dirty": bool(result.stdout.strip())},
    updates=lambda line: Progress(label=line.text[:200]) if line.text else None,
)
raw = shell(Command(["true"]), effect=idempotent_effect("repo.read"), allow_non_zero_exit=True)

@compute
def review(ctx: Context[Task]) -> Review:
    return Review(route="issues" if ctx.output_of(status)["dirty"] else "clean")

@action(effect=manual_effect("mail.send"))
async def send(ctx: ActionContext[Task]) -> dict[str, str]:
    await ctx.publish_update(Progress(status="running", completed=1, total=2, unit="mails"))
    return {"key": ctx.effect_key, "route": ctx.output_of(review).route}

ask = checkpoint("Send it?", output=Answer, run=lambda ctx: {"status": ctx.outputs["status"]})

@compute(timeout=lambda ctx: timedelta(seconds=5), retry=Retry(max_attempts=2, on=("failed",)))
async def finish(ctx: Context[Task]) -> dict[str, bool]:
    result: ShellResult = ctx.output_of(raw)
    return {"went_on": ctx.output_of(ask).go_on, "clean": result.exit_code == 0}

fallback = compute(lambda ctx: {"route": "clean"}, output=Review)

workflow = define_workflow(
    "sample", input=Task, start="status", title=lambda task: task.repo,
    nodes={
        "status": status, "raw": raw, "review": review, "ask": ask, "send": send,
        "finish": finish, "fallback": fallback,
    },
    edges=[
        edge("status", "raw"),
        switch("raw", on="$result.outcome", cases={"ok": "review", "failed": "fallback"}),
        switch("review", on="$.route", cases={"clean": "finish", "issues": "ask"}),
        switch("ask", on="$.go_on", cases={True: "send", False: "finish"}),
        edge("fallback", "ask"),
    ],
)
"""
WRONG = (
    ('ctx.output_of(status)["dirty"]', 'ctx.output_of(status)["dirty"].upper()'),
    ("ctx.output_of(review).route", "ctx.output_of(review).rute"),
    ("ctx.output_of(ask).go_on", "ctx.output_of(ask).go_off"),
    ("result: ShellResult =", "result: str ="),
    ('effect=manual_effect("mail.send")', ""),
    ("input=Task, ", "input=dict, "),
    ("lambda task: task.repo", "lambda task: task.repository"),
    ('edge("fallback", "ask")', 'edge("fallback", ask)'),
    ("Retry(max_attempts=2", 'Retry(max_attempts="2"'),
    ('on=("failed",)', 'on=("cancelled",)'),
)


def mypy(directory: Path) -> list[str]:
    """Return mypy's errors for the files of the directory, checked strictly."""
    answer = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--no-error-summary", "."],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not answer.stderr, answer.stderr
    return answer.stdout.splitlines()


@pytest.mark.slow
def test_a_workflow_file_is_strictly_typed(tmp_path: Path) -> None:
    """A whole workflow passes strict checking, and each of ten mistakes in it is found."""
    (tmp_path / "sample_workflow.py").write_text(WORKFLOW)
    for number, (right, wrong) in enumerate(WRONG):
        assert WORKFLOW.count(right) == 1, right
        (tmp_path / f"wrong{number}_workflow.py").write_text(WORKFLOW.replace(right, wrong))
    errors = mypy(tmp_path)
    assert not [line for line in errors if line.startswith("sample_")]
    found = {line.partition("_")[0] for line in errors if ": error: " in line}
    assert found == {f"wrong{number}" for number in range(len(WRONG))}
