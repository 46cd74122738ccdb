"""The newest attempt of each node: what outputs, results, the graph and a resume are derived from.

The node paths come from the definition, so that no read follows a run's length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import CARRIED_BYTES_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.rows import AttemptStatus
from pi_workflows.views.items import Settled
from pi_workflows.views.value import Value

SQL: Final = load(__package__, "graph.sql")


class Head(NamedTuple):
    """A node's newest attempt, and its newest settled one with its step."""

    node_path: str
    attempt_id: str
    visit_number: int
    attempt_number: int
    status: AttemptStatus
    settled_id: str | None
    settled_visit: int | None
    settled_number: int | None
    step_index: int | None


class HeadValue(NamedTuple):
    """The output and error of a node's newest settled attempt."""

    node_path: str
    status: Settled
    output_hash: bytes | None
    output_media: str | None
    output_bytes: int | None
    output_content: bytes | None
    error_hash: bytes | None
    error_media: str | None
    error_bytes: int | None
    error_content: bytes | None

    @property
    def output(self) -> Value | None:
        """What the attempt gave; only a completed one counts as the node's output."""
        if self.status != "completed":
            return None
        return Value.of(self.output_hash, self.output_media, self.output_bytes, self.output_content)

    @property
    def error(self) -> Value | None:
        """What went wrong."""
        return Value.of(self.error_hash, self.error_media, self.error_bytes, self.error_content)


class _Number(NamedTuple):
    value: int


def node_heads(read: Read, run_id: str, node_paths: Iterable[str]) -> list[Head]:
    """Return the newest attempts of those nodes that have any, in the order of the paths."""
    return read.all(Head, SQL["node_heads"], run_id=run_id, node_paths=json_list(node_paths))


def head_values(read: Read, heads: Iterable[Head]) -> list[HeadValue]:
    """Return what the heads' settled attempts gave, the newest first."""
    settled = sorted(
        (head for head in heads if head.settled_id is not None), key=_recency, reverse=True
    )
    ids = [head.settled_id for head in settled if head.settled_id is not None]
    return read.all(
        HeadValue,
        SQL["head_values"],
        attempt_ids=json_list(ids),
        carried_bytes=CARRIED_BYTES_MAX,
    )


def _recency(head: Head) -> float:
    """Order heads by step; an attempt that ended with its run is the newest."""
    return float("inf") if head.step_index is None else head.step_index


def last_node(heads: Iterable[Head]) -> str | None:
    """Return the node that was worked on last, None before any: one that was left, if there is."""
    newest = max(heads, key=_lateness, default=None)
    return newest.node_path if newest is not None else None


def _lateness(head: Head) -> tuple[bool, int]:
    """Order nodes by how late they were worked on; one without a step was left in the middle."""
    is_left = head.settled_id != head.attempt_id or head.step_index is None
    return is_left, head.step_index or 0


def step_total(read: Read, run_id: str) -> int:
    """Return how many steps a run has."""
    row = read.one(_Number, SQL["step_total"], run_id=run_id)
    return row.value if row else 0


def json_list(values: Iterable[str] | Sequence[int]) -> str:
    """Return values as the JSON text that a statement reads them from."""
    listed: list[Json] = list(values)
    return canonical.encode(listed).decode()
