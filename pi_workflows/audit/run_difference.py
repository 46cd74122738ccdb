"""Comparing two runs of a database that no server has open: where they part, and side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Final

from pi_workflows.audit.damage import damage_of_file, damage_of_run
from pi_workflows.base.canonical import Json
from pi_workflows.base.sql import Read
from pi_workflows.store.inactive import open_inactive
from pi_workflows.views.run_record import (
    NodeTimes,
    RunRecord,
    StepRecord,
    node_times,
    run_record,
    step_records,
)
from pi_workflows.views.story import run_totals
from pi_workflows.views.story_times import Totals

__all__ = ["NodeSide", "RunDifference", "RunSide", "StepRecord", "compare_runs"]

_BEGINNING: Final = ("workflow", "definition", "input")
_UNTRIED: Final = NodeTimes("", 0, 0, 0)


@dataclass(slots=True)
class NodeSide:
    """What a node came to in one run.

    Attributes:
        times: How often it was tried, and for how long.
        outcomes: How often it ended in which way.
        last: Its newest settled attempt.
    """

    times: NodeTimes = _UNTRIED
    outcomes: Counter[str] = field(default_factory=Counter[str])
    last: StepRecord | None = None

    def document(self) -> dict[str, Json]:
        """Return the node as documents have it."""
        document: dict[str, Json] = {
            "attempts": self.times.attempts,
            "activeMs": self.times.active_ms,
            "waitingMs": self.times.waiting_ms,
            "outcomes": dict[str, Json](sorted(self.outcomes.items())),
        }
        last = self.last
        if last is None:
            return document
        if last.output_hash is not None:
            document["output"] = _value(last.output_hash, last.output_bytes)
        if last.settings_hash is not None:
            document["settings"] = {
                "scopeId": last.settings_scope_id,
                "changeNumber": last.settings_change_number,
                "sha256": last.settings_hash.hex(),
            }
        return document

    @property
    def output_hash(self) -> bytes | None:
        """The digest of its newest output; None when its newest attempt gave none."""
        return self.last.output_hash if self.last is not None else None

    @property
    def settings_hash(self) -> bytes | None:
        """The digest of the settings that its newest attempt saw; None without settings."""
        return self.last.settings_hash if self.last is not None else None


@dataclass(slots=True)
class RunSide:
    """One of the two runs.

    Attributes:
        record: What it began with and came to.
        totals: Where its time went.
        nodes: What each node came to that was begun, in the order in which they settled first.
        step_total: How many steps it took.
    """

    record: RunRecord
    totals: Totals
    nodes: dict[str, NodeSide] = field(default_factory=dict[str, NodeSide])
    step_total: int = 0

    def document(self) -> dict[str, Json]:
        """Return the run as documents have it."""
        record = self.record
        document: dict[str, Json] = {
            "runId": record.run_id,
            "workflowName": record.workflow_name,
            "definitionDigest": f"sha256:{record.definition_digest.hex()}",
            "sourceRevision": record.source_revision,
            "launchOptions": record.launch_options_hash.hex(),
            "input": _value(record.input_hash, record.input_bytes),
            "status": record.status,
            "steps": self.step_total,
            "totals": self.totals.document(),
        }
        if record.output_hash is not None:
            document["output"] = _value(record.output_hash, record.output_bytes)
        return document


@dataclass(frozen=True, slots=True)
class RunDifference:
    """Two runs side by side.

    Attributes:
        left: The one.
        right: The other.
        beginning: What differs before the first step: `workflow`, `definition`, `input`.
        parting: The first step that differs, or that only one of them took.
    """

    left: RunSide
    right: RunSide
    beginning: tuple[str, ...]
    parting: tuple[StepRecord | None, StepRecord | None] | None

    @property
    def is_equal(self) -> bool:
        """Whether they did the same: times and the launch's surroundings do not count."""
        left, right = self.left.record, self.right.record
        ends = (left.status, left.output_hash) == (right.status, right.output_hash)
        return not self.beginning and self.parting is None and ends

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that either of them began, in order."""
        return tuple(dict.fromkeys((*self.left.nodes, *self.right.nodes)))

    def document(self) -> dict[str, Json]:
        """Return the comparison as documents have it."""
        document: dict[str, Json] = {
            "equal": self.is_equal,
            "beginning": list[Json](self.beginning),
            "left": self.left.document(),
            "right": self.right.document(),
            "nodes": [self._node(name) for name in self.nodes],
        }
        if self.parting is not None:
            one, other = self.parting
            parting: dict[str, Json] = {"stepIndex": (one or other or _NO_STEP).step_index}
            if one is not None:
                parting["left"] = _step(one)
            if other is not None:
                parting["right"] = _step(other)
            document["parting"] = parting
        return document

    def _node(self, name: str) -> Json:
        """Return what a node came to in both."""
        left, right = self.left.nodes.get(name), self.right.nodes.get(name)
        document: dict[str, Json] = {
            "nodeId": name,
            "sameOutput": left is not None
            and right is not None
            and left.output_hash == right.output_hash,
        }
        if left is not None:
            document["left"] = left.document()
        if right is not None:
            document["right"] = right.document()
        return document


_NO_STEP: Final = StepRecord(0, "", 1, 1, "failed", None, None, None, None, None)


def compare_runs(
    file: Path, *, live_directory: Path | None, left: str, right: str
) -> RunDifference:
    """Compare two runs.

    Args:
        file: The database; nothing is written into it.
        live_directory: The state directory, whose database is refused by any path.
        left: The one run.
        right: The other.

    Returns:
        Where they part, and both side by side.

    Raises:
        NotFound: There is no such file, or no such run in it (`runMissing`).
        AuthorityDenied: It is the live database, or is not self-contained.
        Incompatible: It is not our database.
        Corrupt: It is damaged.
        Unavailable: The disk failed.
    """
    with open_inactive(file, live_directory=live_directory) as read, damage_of_file():
        return _compared(read, left, right)


def _compared(read: Read, left: str, right: str) -> RunDifference:
    """Compare two runs in one read."""
    one, other = _side(read, left), _side(read, right)
    parting = None
    for mine, theirs in zip_longest(step_records(read, left), step_records(read, right)):
        if parting is None and _did(mine) != _did(theirs):
            parting = (mine, theirs)
        for side, step in ((one, mine), (other, theirs)):
            if step is not None:
                _take(side, step)
    for side in (one, other):
        for name, times in node_times(read, side.record.run_id).items():
            side.nodes.setdefault(name, NodeSide()).times = times
    return RunDifference(one, other, _beginning(one.record, other.record), parting)


def _side(read: Read, run_id: str) -> RunSide:
    """Begin with one of the runs."""
    with damage_of_run(read, run_id):
        return RunSide(run_record(read, run_id), run_totals(read, run_id))


def _take(side: RunSide, step: StepRecord) -> None:
    """Take in the next step of a run."""
    side.step_total += 1
    node = side.nodes.setdefault(step.node_id, NodeSide())
    node.outcomes[step.outcome] += 1
    node.last = step


def _did(step: StepRecord | None) -> tuple[object, ...] | None:
    """Return what makes two steps the same one; a lost runner only costs an attempt number."""
    if step is None:
        return None
    return step.node_id, step.visit, step.outcome, step.output_hash


def _beginning(left: RunRecord, right: RunRecord) -> tuple[str, ...]:
    """Return what differs before the first step."""
    same = (
        left.workflow_name == right.workflow_name,
        left.definition_digest == right.definition_digest,
        left.input_hash == right.input_hash,
    )
    return tuple(name for name, is_same in zip(_BEGINNING, same, strict=True) if not is_same)


def _value(digest: bytes, count_bytes: int | None) -> Json:
    """Return what is said of a value: never the value itself."""
    return {"sha256": digest.hex(), "bytes": count_bytes}


def _step(step: StepRecord) -> Json:
    """Return a step as documents have it."""
    document: dict[str, Json] = {
        "nodeId": step.node_id,
        "visit": step.visit,
        "attemptNumber": step.attempt_number,
        "outcome": step.outcome,
    }
    if step.output_hash is not None:
        document["output"] = _value(step.output_hash, step.output_bytes)
    return document
