"""`audit diff-runs`: where two runs part, and both side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from pi_workflows.audit.run_difference import (
    NodeSide,
    RunDifference,
    RunSide,
    StepRecord,
    compare_runs,
)
from pi_workflows.cli.connection import state_directory
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.measures import duration, plural, size
from pi_workflows.cli.outcome import FAILED
from pi_workflows.cli.output import Line
from pi_workflows.cli.paragraph import wrapped
from pi_workflows.cli.source import source
from pi_workflows.cli.table import ELLIPSIS

# Two columns of values and one of labels fit a window of 80 columns.
_LABEL: Final = 18
_VALUE: Final = 28
_DIGEST_CHARS: Final = 12
_NOTHING: Final = "-"
_MARK: Final = "* "
_TOTALS: Final = (
    ("wall", "wall_ms"),
    ("active", "active_ms"),
    ("between nodes", "between_ms"),
    ("queued", "queued_ms"),
    ("delayed", "delayed_ms"),
    ("waiting", "waiting_ms"),
    ("paused", "paused_ms"),
    ("parked", "parked_ms"),
    ("interrupted", "interrupted_ms"),
)


def diff_runs(invocation: Invocation, file: Path, left: str, right: str) -> int:
    """Compare two runs of a file.

    Args:
        invocation: The invocation.
        file: A database that no server has open.
        left: The one run.
        right: The other.

    Returns:
        The exit code: 1 when they differ in more than their times.

    Raises:
        NotFound: There is no such run.
        Refused: `runAmbiguous`.
        WorkflowsError: As `source`.
    """
    with source(invocation, file) as asked:
        run_ids = asked.run_id_of(left), asked.run_id_of(right)
        found = compare_runs(
            file, live_directory=state_directory().root, left=run_ids[0], right=run_ids[1]
        )
    output = invocation.output
    if output.is_json:
        output.document({"schema": "pi-workflows.cli-diff-runs.v1", **found.document()})
    else:
        output.styled(_lines(found, output.columns))
    return 0 if found.is_equal else FAILED


def _lines(found: RunDifference, columns: int | None) -> Iterator[Line]:
    """Yield the comparison."""
    for text in wrapped(escaped(_summary(found)), columns):
        yield ((text, "bold"),)
    yield ()
    yield _row("", found.left.record.run_id, found.right.record.run_id, style="bold", is_same=True)
    yield from _beginnings(found)
    if found.parting is not None:
        one, other = found.parting
        index = one or other
        assert index is not None, "nobody took the step"
        yield _row(f"step {index.step_index + 1}", _node_of(one), _node_of(other))
        yield _row("  gave", _given(one), _given(other))
    for name in found.nodes:
        yield ()
        yield ((escaped(f"  {name}"), "bold"),)
        yield from _node_rows(found.left.nodes.get(name), found.right.nodes.get(name))
    yield ()
    yield (("  Time", "bold"),)
    for label, name in _TOTALS:
        spent = [int(getattr(side.totals, name)) for side in (found.left, found.right)]
        if any(spent):
            yield _row(label, *map(duration, spent), is_same=True)


def _summary(found: RunDifference) -> str:
    """Return where they part, in one sentence."""
    if found.is_equal:
        return f"They do not part: {plural(found.left.step_total, 'step')}, the same in both."
    parts: list[str] = []
    if found.beginning:
        names = " and ".join(found.beginning)
        parts.append(f"They began with another {names}")
    if found.parting is None:
        parts.append("their steps are the same" if parts else "Their steps are the same")
        if found.left.record.status != found.right.record.status:
            parts.append("they ended differently")
        return f"{'; '.join(parts)}."
    one, other = found.parting
    step = one or other
    assert step is not None, "nobody took the step"
    place = f"at step {step.step_index + 1}"
    who = "they part" if parts else "They part"
    if one is None or other is None:
        gone = found.right.record.run_id if one is None else found.left.record.run_id
        parts.append(f"{who} {place}, which only {gone} took: {_node_of(step)}")
    else:
        parts.append(f"{who} {place}: {_why(one, other)}")
    return f"{'; '.join(parts)}."


def _why(one: StepRecord, other: StepRecord) -> str:
    """Return in what two steps differ."""
    if (one.node_id, one.visit) != (other.node_id, other.visit):
        return f"one went to {one.node_id}, the other to {other.node_id}"
    if one.outcome != other.outcome:
        ends = f"{_words(one.outcome)} in one, {_words(other.outcome)} in the other"
        return f"{one.node_id} ended {ends}"
    return f"{one.node_id} gave another output"


def _beginnings(found: RunDifference) -> Iterator[Line]:
    """Yield what the runs began with and came to."""
    left, right = found.left, found.right

    def row(label: str, of: Callable[[RunSide], str]) -> Line:
        return _row(label, of(left), of(right))

    yield row("workflow", lambda side: side.record.workflow_name)
    yield row("definition", lambda side: side.record.definition_digest.hex()[:_DIGEST_CHARS])
    yield row("source", lambda side: side.record.source_revision[:_DIGEST_CHARS])
    yield row("input", lambda side: _value(side.record.input_hash, side.record.input_bytes))
    yield row("launch options", lambda side: side.record.launch_options_hash.hex()[:_DIGEST_CHARS])
    yield row("status", lambda side: _words(side.record.status))
    yield row("output", lambda side: _value(side.record.output_hash, side.record.output_bytes))
    yield row("steps", lambda side: str(side.step_total))


def _node_rows(left: NodeSide | None, right: NodeSide | None) -> Iterator[Line]:
    """Yield what a node came to in both."""

    def row(label: str, of: Callable[[NodeSide], str], *, is_same: bool | None = None) -> Line:
        sides = [of(side) if side is not None else _NOTHING for side in (left, right)]
        return _row(label, *sides, is_same=is_same)

    yield row("attempts", lambda side: str(side.times.attempts))
    yield row("outcomes", _outcomes)
    yield row("output", lambda side: _given(side.last))
    if any(side is not None and side.settings_hash is not None for side in (left, right)):
        yield row("settings", _settings)
    yield row("active", lambda side: duration(side.times.active_ms), is_same=True)
    if any(side is not None and side.times.waiting_ms for side in (left, right)):
        yield row("waiting", lambda side: duration(side.times.waiting_ms), is_same=True)


def _outcomes(side: NodeSide) -> str:
    """Return how often a node ended in which way."""
    ends = (f"{count}x {_words(name)}" for name, count in sorted(side.outcomes.items()))
    return ", ".join(ends) or _NOTHING


def _settings(side: NodeSide) -> str:
    """Return which settings the newest attempt of a node saw."""
    last = side.last
    if last is None or last.settings_hash is None:
        return _NOTHING
    return f"#{last.settings_change_number} {last.settings_hash.hex()[:_DIGEST_CHARS]}"


def _node_of(step: StepRecord | None) -> str:
    """Return which node a step was, and how it ended."""
    if step is None:
        return _NOTHING
    visit = f" ({step.visit})" if step.visit > 1 else ""
    return f"{step.node_id}{visit} {_words(step.outcome)}"


def _given(step: StepRecord | None) -> str:
    """Return what a step gave."""
    return _NOTHING if step is None else _value(step.output_hash, step.output_bytes)


def _value(digest: bytes | None, count_bytes: int | None) -> str:
    """Return the beginning of a value's digest, and its size."""
    if digest is None:
        return _NOTHING
    return f"{digest.hex()[:_DIGEST_CHARS]}, {size(count_bytes or 0)}"


def _words(name: str) -> str:
    """Return a status as words."""
    return name.replace("_", " ")


def _row(
    label: str, left: str, right: str, *, style: str = "", is_same: bool | None = None
) -> Line:
    """Return a row; a mark stands before one whose sides differ.

    Args:
        label: What is compared.
        left: The one side.
        right: The other side.
        style: How the values look.
        is_same: Whether they count as the same; None compares them.
    """
    differs = left != right if is_same is None else not is_same
    mark, look = (_MARK, "yellow") if differs else ("  ", style)
    cells = [_fitted(escaped(text)) for text in (left, right)]
    return (
        (mark, look),
        (f"{label:<{_LABEL}}  ", "dim"),
        (f"{cells[0]:<{_VALUE}}  {cells[1]}", look),
    )


def _fitted(text: str) -> str:
    """Return a text that is no wider than its column."""
    return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}{ELLIPSIS}"
