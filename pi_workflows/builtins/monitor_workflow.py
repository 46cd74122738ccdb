"""Check a command on a schedule until a condition holds, and report what changes.

    pi-workflows run monitor --input '{"command": ["curl", "-fsS", "https://example.org/health"]}'

Between two checks the run waits without any process, for as long as it takes. The command only
looks: it may run once more after a crash.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from pi_workflows import (
    Command,
    Context,
    Progress,
    compute,
    define_workflow,
    edge,
    exit,  # noqa: A004 - the language's own name
    idempotent_effect,
    notify,
    shell,
    switch,
)

# Four steps a check, of the million that a run may have.
CHECKS_MAX = 200_000
STEPS_MAX = 1_000_000
SECONDS_PER_WEEK = 7 * 86_400
# How much of an output is kept with each judgement, and said in a notification.
KEPT_CHARS = 4_000
SAID_CHARS = 400


class Document(BaseModel):
    """The base of everything that this workflow reads and writes: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Until(Document):
    """What has to hold of one check: all that is given. Nothing given means exit code 0."""

    exit_code: int | None = Field(default=None, description="The exit code.")
    output_matches: str | None = Field(
        default=None, max_length=1_000, description="A regular expression found in its output."
    )
    changed: bool = Field(
        default=False, description="Exit code or output differ from those of the first check."
    )

    @field_validator("output_matches")
    @classmethod
    def _compiles(cls, pattern: str | None) -> str | None:
        try:
            re.compile(pattern or "")
        except re.error as error:
            message = f"is no regular expression: {error}"
            raise ValueError(message) from None
        return pattern


class Watch(Document):
    """The workflow's input."""

    command: list[str] = Field(min_length=1, description="The program and its arguments.")
    cwd: str = Field(default=".", description="Where it runs; relative to the project.")
    until: Until = Field(default_factory=Until, description="When the run is done.")
    interval_seconds: float = Field(
        default=60, gt=0, le=SECONDS_PER_WEEK, description="From the end of a check to the next."
    )
    checks_max: int = Field(default=1_000, ge=1, le=CHECKS_MAX, description="Checks at most.")
    deadline_seconds: float | None = Field(
        default=None, gt=0, description="Wall time in which the condition has to hold."
    )
    check_seconds_max: float = Field(
        default=60, gt=0, le=86_400, description="Time of one check, which is then cut short."
    )
    report_changes: bool = Field(
        default=True, description="Whether the session is told when the result changes."
    )


class Seen(Document):
    """What one check showed: an exit code and the end of an output, or why there is none."""

    exit_code: int | None
    output: str
    digest: str
    error: str | None = None


class Judgement(Document):
    """What a check means for the run."""

    check: int
    seen: Seen
    first_digest: str
    next: Literal["met", "over", "changed", "same"]
    why: str
    elapsed_ms: int
    wait_ms: int


class Report(Document):
    """What came of the watch."""

    met: bool
    why: str
    checks: int
    seconds: float
    exit_code: int | None
    output: str


def now_ms() -> int:
    """Return the wall time in milliseconds."""
    return round(datetime.now(UTC).timestamp() * 1_000)


@compute
def begin(ctx: Context[Watch]) -> dict[str, int]:
    """Keep when the watch began, as the deadline counts from there."""
    return {"since_ms": now_ms()}


check = shell(
    lambda ctx: Command(ctx.input.command, cwd=ctx.input.cwd),
    effect=idempotent_effect("monitor.check"),
    allow_non_zero_exit=True,
    timeout=lambda ctx: timedelta(seconds=ctx.input.check_seconds_max),
    status_detail="checking",
)


def seen(ctx: Context[Watch]) -> Seen:
    """Return what the newest check showed."""
    result = ctx.outputs.get("check")
    if result is None:
        ended = ctx.results["check"]
        error = f"{ended.outcome}: {ended.error or 'no reason is known'}"
        return Seen(exit_code=None, output="", digest=ended.outcome, error=error)
    output = result["stdout"] + result["stderr"]
    text = f"{result['exitCode']} {result['signal']} {output}"
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Seen(exit_code=result["exitCode"], output=output[-KEPT_CHARS:], digest=digest)


def holds(ctx: Context[Watch], found: Seen, first_digest: str) -> bool:
    """Whether the condition holds."""
    until = ctx.input.until
    if found.error is not None:
        return False
    wanted = until.exit_code
    if wanted is None and until.output_matches is None and not until.changed:
        wanted = 0
    if wanted is not None and found.exit_code != wanted:
        return False
    if until.changed and found.digest == first_digest:
        return False
    if until.output_matches is None:
        return True
    result = ctx.outputs["check"]
    return re.search(until.output_matches, result["stdout"] + result["stderr"]) is not None


def verdict(
    ctx: Context[Watch], found: Seen, before: Judgement | None, left_ms: int | None
) -> tuple[Literal["met", "over", "changed", "same"], str]:
    """Return what a check means for the run, and why.

    Args:
        ctx: The context.
        found: What the check showed.
        before: The judgement of the check before it.
        left_ms: Milliseconds until the deadline, if there is one.
    """
    asked = ctx.input
    number = 1 if before is None else before.check + 1
    if holds(ctx, found, found.digest if before is None else before.first_digest):
        return "met", "the condition holds"
    if left_ms is not None and left_ms <= 0:
        return "over", f"the deadline of {asked.deadline_seconds:g} s has passed"
    if number >= asked.checks_max:
        return "over", f"{number} checks were made"
    if asked.report_changes and before is not None and before.seen.digest != found.digest:
        return "changed", "the result changed"
    return "same", "the condition does not hold yet"


@compute(status_detail="judging the check")
def judge(ctx: Context[Watch]) -> Judgement:
    """Compare a check with the condition, with the one before it, and with the limits."""
    found = seen(ctx)
    earlier = ctx.outputs.get("judge")
    before = None if earlier is None else Judgement.model_validate(earlier)
    if before is None and found.error is not None and ctx.results["check"].outcome == "failed":
        # A command that cannot even begin is a mistake in the input, not a state to watch.
        raise ValueError(found.error)
    asked = ctx.input
    elapsed_ms = max(0, now_ms() - ctx.outputs["begin"]["since_ms"])
    wait_ms, left_ms = round(asked.interval_seconds * 1_000), None
    if asked.deadline_seconds is not None:
        left_ms = round(asked.deadline_seconds * 1_000) - elapsed_ms
        # The last check is made when the deadline comes, not after it.
        wait_ms = min(wait_ms, left_ms)
    what, why = verdict(ctx, found, before, left_ms)
    judged = Judgement(
        check=1 if before is None else before.check + 1,
        seen=found,
        first_digest=found.digest if before is None else before.first_digest,
        next=what,
        why=why,
        elapsed_ms=elapsed_ms,
        wait_ms=max(1, wait_ms),
    )
    ctx.publish_update_from_thread(progress(judged))
    return judged


def progress(judged: Judgement) -> Progress:
    """Return what people see of the watch while it goes on."""
    label = " ".join(f"{said(judged.seen)[:120]}; {judged.why}".split())
    unit = "check" if judged.check == 1 else "checks"
    match judged.next:
        case "met":
            return Progress(status="completed", label=label, completed=judged.check, unit=unit)
        case "over":
            return Progress(status="failed", label=label, completed=judged.check, unit=unit)
        case _:
            return Progress(status="waiting", label=label, completed=judged.check, unit=unit)


def said(found: Seen) -> str:
    """Say what a check showed, in a line and the end of its output."""
    if found.error is not None:
        return found.error[:SAID_CHARS]
    ended = "ended by a signal" if found.exit_code is None else f"exit code {found.exit_code}"
    output = found.output.strip()[-SAID_CHARS:]
    return f"{ended}: {output}" if output else ended


@notify(kind="progress")
def tell(ctx: Context[Watch]) -> str:
    """Tell the session that the result changed."""
    found = ctx.output_of(judge)
    return f"Check {found.check} of {' '.join(ctx.input.command)}: {said(found.seen)}"


@compute(status_detail="waiting for the next check")
def rest(ctx: Context[Watch]) -> dict[str, int]:
    """Say how long it is until the next check."""
    return {"wait_ms": ctx.output_of(judge).wait_ms}


def reported(ctx: Context[Watch], *, met: bool) -> Report:
    """Return the report that ends the watch."""
    last = ctx.output_of(judge)
    return Report(
        met=met,
        why=last.why,
        checks=last.check,
        seconds=last.elapsed_ms / 1_000,
        exit_code=last.seen.exit_code,
        output=last.seen.output,
    )


@compute
def met(ctx: Context[Watch]) -> Report:
    """Report that the condition holds."""
    return reported(ctx, met=True)


@compute
def over(ctx: Context[Watch]) -> Report:
    """Report that a limit was reached first."""
    return reported(ctx, met=False)


workflow = define_workflow(
    name="monitor",
    contract_id="pi-workflows.monitor.v1",
    title=lambda asked: f"Monitor {' '.join(asked.command)}"[:200],
    input=Watch,
    start="begin",
    max_steps=STEPS_MAX,
    nodes={
        "begin": begin,
        "check": check,
        "judge": judge,
        "tell": tell,
        "rest": rest,
        "met": met,
        "over": over,
    },
    edges=[
        edge("begin", "check"),
        switch(
            "check",
            on="$result.outcome",
            cases={"ok": "judge", "failed": "judge", "timed_out": "judge"},
        ),
        switch(
            "judge",
            on="$.next",
            cases={"met": "met", "over": "over", "changed": "tell", "same": "rest"},
        ),
        edge("tell", "rest"),
        edge("rest", "check", delay="$.wait_ms"),
    ],
    exits={"met": exit("met", output=Report), "over": exit("over", output=Report)},
)
