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
    ActionContext, Command, Context, DecisionRequest, Progress, Response, Retry, ShellResult,
    Timeout, action, agent, assistant_message, checkpoint, choice, compute, decision,
    decision_edge, define_workflow, edge, human_choices, human_decision, human_decision_edge,
    idempotent_effect, manual_effect, notify, present, shell, switch, text_input,
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

second = agent(
    prompt=lambda ctx: f"Review: {ctx.input.repo}", output=Review, allowed_tools=["read"],
    timeout=timedelta(minutes=30), retry=Retry(max_attempts=3),
)

@agent(output="the number of files", validate=int)
async def counted(ctx: Context[Task]) -> str:
    return ctx.output_of(second).route.upper()

explain = agent(prompt="Explain.", output=assistant_message(max_chars=2_000))
pick = decision(choices=("y", "n"), question=lambda ctx: "Same plan?")

@notify(kind="final")
def say(ctx: Context[Task]) -> str:
    chosen: Response = ctx.output_of(approve)
    return f"{ctx.output_of(explain).strip()} {ctx.output_of(counted) + 1} {chosen.choice}"

@human_decision(
    audience="operator",
    choices=human_choices(
        continue_=choice("Continue"),
        replan=choice("Replan", input=text_input("how", prompt="What should change?")),
    ),
    on_timeout=Timeout(timedelta(minutes=10), {"choice": "continue"}),
)
async def approve(ctx: Context[Task]) -> DecisionRequest:
    shown = present("Go on?").bullets("one", "two").fields(Repository=ctx.input.repo)
    return DecisionRequest(title="Go on?", subject=ctx.output_of(second), presentation=shown)

workflow = define_workflow(
    "sample", input=Task, start="status", title=lambda task: task.repo,
    nodes={
        "status": status, "raw": raw, "review": review, "ask": ask, "send": send,
        "finish": finish, "fallback": fallback, "second": second, "counted": counted,
        "explain": explain, "pick": pick, "say": say, "approve": approve,
    },
    edges=[
        edge("status", "raw"),
        switch("raw", on="$result.outcome", cases={"ok": "review", "failed": "fallback"}),
        switch("review", on="$.route", cases={"clean": "finish", "issues": "ask"}),
        switch("ask", on="$.go_on", cases={True: "send", False: "finish"}),
        edge("fallback", "ask"),
        edge("finish", "second"),
        edge("second", "counted"),
        edge("counted", "explain"),
        edge("explain", "pick"),
        decision_edge("pick", cases={"y": "approve", "n": "say"}),
        human_decision_edge("approve", cases={"continue": "say", "replan": "second"}),
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
    ("ctx.output_of(second).route.upper()", "ctx.output_of(second).rote.upper()"),
    ("ctx.output_of(counted) + 1", "ctx.output_of(counted).strip()"),
    ("ctx.output_of(explain).strip()", "ctx.output_of(explain).route"),
    ("chosen: Response =", "chosen: str ="),
    ("output=Review, allowed_tools", "output=7, allowed_tools"),
    ('kind="final"', 'kind="last"'),
    (
        "async def approve(ctx: Context[Task]) -> DecisionRequest:",
        "async def approve(ctx: int) -> str:",
    ),
    ("max_chars=2_000", 'max_chars="2000"'),
    ('choices=("y", "n")', "choices=(1, 2)"),
    ('title="Go on?", subject', 'titel="Go on?", subject'),
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
    """A whole workflow passes strict checking, and each of twenty mistakes in it is found."""
    (tmp_path / "sample_workflow.py").write_text(WORKFLOW)
    for number, (right, wrong) in enumerate(WRONG):
        assert WORKFLOW.count(right) == 1, right
        (tmp_path / f"wrong{number}_workflow.py").write_text(WORKFLOW.replace(right, wrong))
    errors = mypy(tmp_path)
    assert not [line for line in errors if line.startswith("sample_")]
    found = {line.partition("_")[0] for line in errors if ": error: " in line}
    assert found == {f"wrong{number}" for number in range(len(WRONG))}
