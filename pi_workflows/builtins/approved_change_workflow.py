"""Propose a change, let a person decide, apply exactly what was approved, and verify it.

    pi-workflows run approved-change --input '{"title": "Stage what changed",
        "propose": ["git", "diff"], "apply": ["git", "apply", "--cached", "-"],
        "verify": ["git", "diff", "--cached", "--check"]}'

`propose` changes nothing: what it writes on its standard output is the proposal. A person sees the
whole of it. `apply` then reads exactly these characters on its standard input. When anything about
that command differs from what was approved it does not run, and the person is asked again.
"""

from __future__ import annotations

import shlex
from datetime import timedelta
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from pi_workflows import (
    Command,
    Context,
    DecisionRequest,
    ShellResult,
    choice,
    compute,
    define_workflow,
    edge,
    exit,  # noqa: A004 - the language's own name
    human_choices,
    human_decision,
    human_decision_edge,
    idempotent_effect,
    manual_effect,
    present,
    shell,
    switch,
    text_input,
)

# What a person is shown holds 64,000 UTF-16 units in all and 16,000 a text: a proposal is shown
# whole, in parts, or not at all.
PROPOSAL_UNITS_MAX = 48_000
PART_UNITS_MAX = 12_000
ENDING_CHARS = 4_000
REVISION = "CHANGE_REVISION"


class Document(BaseModel):
    """The base of everything that this workflow reads and writes: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Change(Document):
    """The workflow's input."""

    title: str = Field(min_length=1, max_length=200, description="What is to be done, in a line.")
    propose: list[str] = Field(
        min_length=1,
        description="Writes the proposal on its standard output and changes nothing; what a"
        f" person wants otherwise is in the variable {REVISION}.",
    )
    apply: list[str] = Field(
        min_length=1, description="Makes the change; reads the proposal on its standard input."
    )
    verify: list[str] = Field(
        min_length=1, description="Ends with exit code 0 when the change is right."
    )
    cwd: str = Field(default=".", description="Where all three run; relative to the project.")
    apply_minutes_max: float = Field(default=30, gt=0, le=10_080, description="Time to apply it.")
    verify_minutes_max: float = Field(default=30, gt=0, le=10_080, description="Time to verify it.")


class Proposal(Document):
    """What is proposed."""

    text: str
    empty: bool


class Outcome(Document):
    """What came of the change."""

    title: str
    applied: bool
    verified: bool
    exit_code: int | None = None
    output: str = ""


def utf16_units(text: str) -> int:
    """Return the length in which limits of a presentation are counted."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def proposed(result: ShellResult) -> Proposal:
    """Take what the command wrote; refuse what nobody could be shown whole."""
    text = result.stdout
    units = utf16_units(text)
    if result.stdout_truncated or units > PROPOSAL_UNITS_MAX:
        message = (
            f"the proposal has {units:,} characters; at most {PROPOSAL_UNITS_MAX:,} can be shown"
            " whole to the person who decides: propose less at once"
        )
        raise ValueError(message)
    return Proposal(text=text, empty=not text.strip())


def proposing(ctx: Context[Change]) -> Command:
    """Return the command that proposes, with what a person wants otherwise."""
    answer: dict[str, Any] = ctx.outputs.get("approve", {})
    wanted: str | None = answer.get("input", {}).get("changes")
    return Command(ctx.input.propose, cwd=ctx.input.cwd, env={REVISION: wanted})


propose = shell(
    proposing,
    effect=idempotent_effect("change.propose"),
    parse=proposed,
    status_detail="making the proposal",
)


def applying(ctx: Context[Change]) -> Command:
    """Return the command that makes the change: what is shown, approved and executed."""
    return Command(ctx.input.apply, cwd=ctx.input.cwd, stdin=ctx.outputs["propose"]["text"])


def parts(text: str) -> list[str]:
    """Cut a proposal between lines into texts that can be shown; a longer line is cut in itself."""
    found: list[str] = []
    size = PART_UNITS_MAX // 2
    for line in text.splitlines(keepends=True):
        pieces = [line[at : at + size] for at in range(0, len(line), size)]
        for piece in pieces:
            if found and utf16_units(found[-1] + piece) <= PART_UNITS_MAX:
                found[-1] += piece
            else:
                found.append(piece)
    return found


@human_decision(
    audience="operator",
    choices=human_choices(
        apply=choice("Apply it"),
        decline=choice("Leave everything as it is"),
        revise=choice(
            "Propose something else",
            input=text_input("changes", prompt="What should be different?"),
        ),
    ),
)
def approve(ctx: Context[Change]) -> DecisionRequest:
    """Ask about exactly the command that is executed, and show the whole proposal."""
    command = applying(ctx).request(ctx.project_path)
    shown = present(ctx.input.title).section("Proposal")
    for part in parts(ctx.outputs["propose"]["text"]):
        shown = shown.preformatted(part)
    shown = shown.section("What is run, with the proposal as its input")
    shown = shown.preformatted(shlex.join(ctx.input.apply))
    shown = shown.fields(
        directory=command["cwd"],
        sha256_of_the_input=command["stdinSha256"],
        verified_by=shlex.join(ctx.input.verify),
    )
    return DecisionRequest(title=ctx.input.title, subject=command, presentation=shown)


apply = shell(
    applying,
    effect=manual_effect("change.apply"),
    approved_by="approve",
    allow_non_zero_exit=True,
    timeout=lambda ctx: timedelta(minutes=ctx.input.apply_minutes_max),
    status_detail="applying the approved change",
)


@compute
def judge(ctx: Context[Change]) -> dict[str, bool]:
    """Say whether the change was made: by its exit code, or by what a person saw of it."""
    result = ctx.outputs["apply"]
    return {"applied": result.get("exitCode") == 0 or result.get("confirmed") is True}


verify = shell(
    lambda ctx: Command(ctx.input.verify, cwd=ctx.input.cwd),
    effect=idempotent_effect("change.verify"),
    allow_non_zero_exit=True,
    timeout=lambda ctx: timedelta(minutes=ctx.input.verify_minutes_max),
    status_detail="verifying the change",
)


@compute
def compare(ctx: Context[Change]) -> dict[str, bool]:
    """Say whether the change is right."""
    return {"verified": ctx.outputs["verify"].get("exitCode") == 0}


def outcome(ctx: Context[Change], node: str | None, *, applied: bool, verified: bool) -> Outcome:
    """Return what came of the change, with how the command ended that says so."""
    result: dict[str, Any] = ctx.outputs[node] if node is not None else {}
    output = str(result.get("stdout", "")) + str(result.get("stderr", ""))
    return Outcome(
        title=ctx.input.title,
        applied=applied,
        verified=verified,
        exit_code=result.get("exitCode"),
        output=output[-ENDING_CHARS:],
    )


@compute
def verified(ctx: Context[Change]) -> Outcome:
    """Report a change that was made and is right."""
    return outcome(ctx, "verify", applied=True, verified=True)


@compute
def unverified(ctx: Context[Change]) -> Outcome:
    """Report a change that was made and is not right."""
    return outcome(ctx, "verify", applied=True, verified=False)


@compute
def not_applied(ctx: Context[Change]) -> Outcome:
    """Report a change whose command failed; it may have done a part of it."""
    return outcome(ctx, "apply", applied=False, verified=False)


@compute
def declined(ctx: Context[Change]) -> Outcome:
    """Report that a person left everything as it is."""
    return outcome(ctx, None, applied=False, verified=False)


@compute
def nothing(ctx: Context[Change]) -> Outcome:
    """Report that nothing was proposed."""
    return outcome(ctx, None, applied=False, verified=False)


workflow = define_workflow(
    name="approved-change",
    contract_id="pi-workflows.approved-change.v1",
    title=lambda asked: asked.title,
    input=Change,
    start="propose",
    max_steps=200,
    nodes={
        "propose": propose,
        "approve": approve,
        "apply": apply,
        "judge": judge,
        "verify": verify,
        "compare": compare,
        "verified": verified,
        "unverified": unverified,
        "not_applied": not_applied,
        "declined": declined,
        "nothing": nothing,
    },
    edges=[
        switch("propose", on="$.empty", cases={True: "nothing", False: "approve"}),
        human_decision_edge(
            "approve", cases={"apply": "apply", "decline": "declined", "revise": "propose"}
        ),
        edge("apply", "judge"),
        switch("judge", on="$.applied", cases={True: "verify", False: "not_applied"}),
        edge("verify", "compare"),
        switch("compare", on="$.verified", cases={True: "verified", False: "unverified"}),
    ],
    exits={
        "verified": exit("verified", output=Outcome),
        "unverified": exit("unverified", output=Outcome),
        "not_applied": exit("not_applied", output=Outcome),
        "declined": exit("declined", output=Outcome),
        "nothing": exit("nothing", output=Outcome),
    },
)
