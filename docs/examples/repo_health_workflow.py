"""How healthy is a git repository, and should a person look at it?

Run it on any clone:

    pi-workflows run docs/examples/repo_health_workflow.py --input '{"repo": "."}'

It reads the history, finds the files that change most and those that change together, measures
them, and compares all that with thresholds. When one is passed it asks a person what to do about
it; the answer becomes part of the report, in the same run.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from itertools import combinations
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from pi_workflows import (
    Command,
    Context,
    Retry,
    ShellResult,
    checkpoint,
    compute,
    define_workflow,
    edge,
    idempotent_effect,
    shell,
    switch,
)

# Reading a repository changes nothing, so a lost step may simply be read again.
READ = idempotent_effect("git.read")
# A commit that touches more files than this says little about which files belong together.
COUPLED_FILES_MAX = 30
COMMIT_MARK = "\x1e"

Key = TypeVar("Key", str, tuple[str, str])


class Document(BaseModel):
    """The base of everything that this workflow reads and writes: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class Settings(Document):
    """The workflow's input."""

    repo: str = Field(min_length=1, description="Path of the clone; relative to the project.")
    commits: int = Field(default=2_000, ge=1, le=20_000, description="Newest commits to read.")
    top: int = Field(default=5, ge=1, le=50, description="Files and pairs to report.")
    churn_lines_max: int = Field(default=5_000, ge=1, description="Changed lines of one file.")
    file_bytes_max: int = Field(default=100_000, ge=1, description="Size of a file that changes.")
    coupling_percent_max: int = Field(default=80, ge=1, le=100, description="Changes in common.")
    coupling_changes_min: int = Field(
        default=8, ge=2, description="Changes before coupling counts."
    )
    ask: Literal["when-needed", "always", "never"] = "when-needed"


class FileChanges(Document):
    """How often and how much one file changed."""

    path: str
    changes: int
    lines: int
    size_bytes: int | None = None


class Pair(Document):
    """Two files that change together."""

    first: str
    second: str
    together: int
    percent: int


class History(Document):
    """What the log says."""

    commits: int
    is_complete: bool
    files: list[FileChanges]
    pairs: list[Pair]


class Finding(Document):
    """A threshold that was passed."""

    kind: Literal["churn", "size", "coupling"]
    subject: str
    measured: int
    limit: int


class Assessment(Document):
    """What the thresholds say."""

    verdict: Literal["look", "fine"]
    findings: list[Finding]
    files: list[FileChanges]


class Answer(Document):
    """What a person decides."""

    decision: Literal["accept", "plan"]
    note: str = Field(default="", max_length=2_000)


class Report(Document):
    """The workflow's output."""

    repo: str
    commits: int
    is_complete: bool
    verdict: Literal["look", "fine"]
    findings: list[Finding]
    files: list[FileChanges]
    pairs: list[Pair]
    answer: Answer | None
    markdown: str


def read_log(result: ShellResult) -> History:
    """Count changes by file and by pair of files, from `git log --numstat`."""
    commits = result.stdout.split(COMMIT_MARK)[1:]
    if result.stdout_truncated:
        # The last commit may have been cut in the middle.
        commits = commits[:-1]
    changes: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for commit in commits:
        touched: set[str] = set()
        for row in commit.split("\n"):
            added, _, rest = row.partition("\t")
            deleted, _, path = rest.partition("\t")
            if path:
                touched.add(path)
                # Binary files count as one line: git writes a dash for both numbers.
                lines[path] += sum(int(n) if n.isdigit() else 1 for n in (added, deleted))
        changes.update(touched)
        if len(touched) <= COUPLED_FILES_MAX:
            together.update(combinations(sorted(touched), 2))
    return History(
        commits=len(commits),
        is_complete=not result.stdout_truncated,
        files=[
            FileChanges(path=path, changes=count, lines=lines[path])
            for path, count in ranked(changes)[:200]
        ],
        pairs=[
            Pair(
                first=first,
                second=second,
                together=count,
                percent=100 * count // min(changes[first], changes[second]),
            )
            for (first, second), count in ranked(together)[:200]
        ],
    )


def ranked(counted: Counter[Key]) -> list[tuple[Key, int]]:
    """Return the counts, highest first, equal ones by name: the order never depends on chance."""
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))


def read_sizes(result: ShellResult) -> dict[str, int]:
    """Return the size of each listed file, from `git ls-tree -l -z`."""
    sizes: dict[str, int] = {}
    for entry in result.stdout.split("\0"):
        about, _, path = entry.partition("\t")
        size = about.split(" ")[-1]
        if path and size.isdigit():
            sizes[path] = int(size)
    return sizes


def git(ctx: Context[Settings], *arguments: str) -> Command:
    """Return a git command in the clone, with paths as they are and no pager or prompt."""
    return Command(
        ["git", "-c", "core.quotePath=false", "--no-pager", "-C", ctx.input.repo, *arguments],
        env={"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"},
    )


history = shell(
    lambda ctx: git(
        ctx,
        "log",
        "--numstat",
        "--no-renames",
        "--no-merges",
        f"--max-count={ctx.input.commits}",
        f"--format=%x{ord(COMMIT_MARK):02x}%H",
    ),
    effect=READ,
    parse=read_log,
    timeout=timedelta(minutes=5),
    retry=Retry(max_attempts=2, on=("timed_out",), delay=timedelta(seconds=1)),
    status_detail="reading the history",
)

sizes = shell(
    lambda ctx: git(
        ctx,
        "ls-tree",
        "-l",
        "-z",
        "--full-tree",
        "HEAD",
        "--",
        *(file.path for file in ctx.output_of(history).files[: ctx.input.top]),
    ),
    effect=READ,
    parse=read_sizes,
    timeout=timedelta(minutes=1),
    status_detail="measuring the files that change most",
)


@compute(status_detail="comparing with the thresholds")
def assess(ctx: Context[Settings]) -> Assessment:
    """Decide whether a person should look."""
    limits, past, measured = ctx.input, ctx.output_of(history), ctx.output_of(sizes)
    files = [
        file.model_copy(update={"size_bytes": measured.get(file.path)})
        for file in past.files[: limits.top]
    ]
    findings = [
        Finding(kind="churn", subject=f.path, measured=f.lines, limit=limits.churn_lines_max)
        for f in files
        if f.lines > limits.churn_lines_max
    ]
    findings += [
        Finding(kind="size", subject=f.path, measured=f.size_bytes, limit=limits.file_bytes_max)
        for f in files
        if f.size_bytes is not None and f.size_bytes > limits.file_bytes_max
    ]
    findings += [
        Finding(
            kind="coupling",
            subject=f"{pair.first} + {pair.second}",
            measured=pair.percent,
            limit=limits.coupling_percent_max,
        )
        for pair in past.pairs[: limits.top]
        if pair.together >= limits.coupling_changes_min
        and pair.percent > limits.coupling_percent_max
    ]
    should_ask = {"always": True, "never": False, "when-needed": bool(findings)}[limits.ask]
    return Assessment(verdict="look" if should_ask else "fine", findings=findings, files=files)


def question(ctx: Context[Settings]) -> dict[str, object]:
    """Show the findings with the question."""
    found = ctx.output_of(assess).findings
    return {
        "repo": ctx.input.repo,
        "findings": [finding_line(each, each.subject) for each in found]
        or ["nothing over its limit"],
    }


review = checkpoint(
    'Should somebody act on this? Answer {"decision": "accept"} or {"decision": "plan"}.',
    output=Answer,
    run=question,
)


@compute(status_detail="writing the report")
def report(ctx: Context[Settings]) -> Report:
    """Put everything into one document, for programs and for people."""
    past, judged = ctx.output_of(history), ctx.output_of(assess)
    answer = ctx.output_of(review) if "review" in ctx.outputs else None
    made = Report(
        repo=ctx.input.repo,
        commits=past.commits,
        is_complete=past.is_complete,
        verdict=judged.verdict,
        findings=judged.findings,
        files=judged.files,
        pairs=past.pairs[: ctx.input.top],
        answer=answer,
        markdown="",
    )
    return made.model_copy(update={"markdown": markdown(made)})


def finding_line(finding: Finding, subject: str) -> str:
    """Return one finding in one line."""
    units = {"churn": "changed lines", "size": "bytes", "coupling": "% of changes in common"}
    return f"{subject}: {finding.measured:,} {units[finding.kind]} (limit {finding.limit:,})"


def code(path: str) -> str:
    """Return a path as Markdown shows it: underscores and stars in names mean nothing."""
    return f"`{path}`"


def markdown(made: Report) -> str:
    """Return the report for people."""
    lines = [f"# Health of {made.repo}", "", f"{made.commits:,} commits read."]
    if not made.is_complete:
        lines.append("Older ones were left out: the history is larger than one step may read.")
    lines += ["", "## Findings", ""]
    lines += [f"- {finding_line(each, code(each.subject))}" for each in made.findings] or [
        "Nothing stands out."
    ]
    lines += ["", "## Files that change most", "", "| file | changes | lines | bytes |"]
    lines += ["| --- | ---: | ---: | ---: |"]
    for file in made.files:
        size = "gone" if file.size_bytes is None else f"{file.size_bytes:,}"
        lines.append(f"| {code(file.path)} | {file.changes:,} | {file.lines:,} | {size} |")
    if made.pairs:
        lines += ["", "## Files that change together", "", "| files | times | share |"]
        lines += ["| --- | ---: | ---: |"]
        for pair in made.pairs:
            both = f"{code(pair.first)} + {code(pair.second)}"
            lines.append(f"| {both} | {pair.together} | {pair.percent} % |")
    if made.answer is not None:
        note = f": {made.answer.note}" if made.answer.note else "."
        lines += ["", "## Decision", "", f"{made.answer.decision.capitalize()}{note}"]
    return "\n".join(lines) + "\n"


workflow = define_workflow(
    name="repo-health",
    title=lambda settings: f"Health of {settings.repo}",
    input=Settings,
    start="history",
    nodes={
        "history": history,
        "sizes": sizes,
        "assess": assess,
        "review": review,
        "report": report,
    },
    edges=[
        edge("history", "sizes"),
        edge("sizes", "assess"),
        switch("assess", on="$.verdict", cases={"look": "review", "fine": "report"}),
        edge("review", "report"),
    ],
)
