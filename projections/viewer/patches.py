"""The patches of one command, target by target (the client protocol, section 7).

A stored patch holds nothing of the run: it names the members of the run view that the command
changed, and the items that it added, and whoever sends it fills them in. So a step costs a few rows
whose patches are the same ones for every step, and no value is stored twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

from pi_workflows.base.blob import Blob
from pi_workflows.base.sql import Projection, load
from pi_workflows.views.named import named_member, named_newest, named_total
from projections.viewer.change import Change

SQL: Final = load(__package__, "patches.sql")

TargetType: TypeAlias = Literal[
    "summary", "graph", "replay", "timeline", "conversation", "inspector"
]
_GRAPH: Final = (
    "/graphSteps",
    "/graphStepStart",
    "/graphStepTotal",
    "/takenTransitions",
    "/takenTransitionStart",
    "/takenTransitionTotal",
    "/graphCursor",
)
_NOTHING: Final = Blob.json([])
# There are a few dozen; whatever a command did, its patches are among them.
_PATCHES_KEPT_MAX: Final = 256
_UPDATES: Final = ("/updates", "/updateStart", "/updateTotal")


@dataclass(frozen=True, slots=True)
class Delta:
    """What one target of a run's view has to do.

    Attributes:
        target_type: The part of the view.
        target_key: Which of its patches this is; empty where there is one kind.
        patch: The operations, in order, as they are stored.
    """

    target_type: TargetType
    target_key: str
    patch: Blob


def deltas_of(change: Change, db: Projection) -> Iterator[Delta]:
    """Yield the patches of a command: at most one for each target and key, and always one."""
    yield Delta("summary", "", _replaced(_summary(change)))
    if change.own:
        yield Delta("graph", "", _replaced(_graph(change)))
    if change.settled:
        yield Delta("replay", "steps:reload", _replaced(("/stepTotal",)))
    if change.own:
        yield Delta("timeline", "trace:tail", _newest(len(change.own)))
    if change.has_progress or any(_had_updates(change, db)):
        yield Delta("inspector", "updates", _replaced(_UPDATES))
    if change.settled or change.has_ended:
        yield Delta("inspector", "aggregates:reload", _NOTHING)


def _summary(change: Change) -> Iterator[str]:
    """Yield where the run stands in the queue and by which revision commands name it."""
    yield "/runRevision"
    if change.has_queue:
        yield "/queue"
    if change.has_queue or change.has_run:
        yield "/manifest"


def _graph(change: Change) -> Iterator[str]:
    """Yield what is known of the run without a body, and where it has been."""
    yield "/state/traceSeq"
    yield "/state/updatedAt"
    if change.has_queue:
        yield "/state/startedAt"
    if change.has_run:
        yield from ("/state/status", "/state/paused", "/state/statusDetail")
    if change.has_ended:
        yield from ("/state/finishedAt", "/state/error")
    if change.has_attempts or change.has_requests:
        yield from ("/state/currentAttemptId", "/state/currentNode")
    if change.has_requests:
        yield from ("/state/waitingOn", "/state/interaction")
    if change.has_attempts:
        yield from _GRAPH


@lru_cache(_PATCHES_KEPT_MAX)
def _newest(count: int) -> Blob:
    """Return the patch that puts the newest events at the end of the trace."""
    return Blob.json(
        [
            {"op": "append", "path": "/items", "value": named_newest(count)},
            {"op": "replace", "path": "/total", "value": named_total()},
        ]
    )


def _had_updates(change: Change, db: Projection) -> Iterator[bool]:
    """Yield for each attempt that began whether its node's progress is no longer shown."""
    for fact in change.started:
        found = db.one(
            _Found,
            SQL["had_updates"],
            run_id=fact.attempt.run_id,
            node_id=fact.attempt.node_id,
            attempt_number=fact.attempt.attempt_number,
        )
        yield found is not None


class _Found(NamedTuple):
    value: int


def _replaced(pointers: Iterable[str]) -> Blob:
    """Return the patch that gives members of the view what they now are."""
    return _replacement(tuple(pointers))


@lru_cache(_PATCHES_KEPT_MAX)
def _replacement(pointers: tuple[str, ...]) -> Blob:
    """Encode such a patch."""
    return Blob.json(
        [{"op": "replace", "path": pointer, "value": named_member(pointer)} for pointer in pointers]
    )
