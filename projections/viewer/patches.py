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
from pi_workflows.base.limits import PAGE_BYTES_MAX
from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.session.checkpoints import boundaries
from pi_workflows.views.named import (
    PageName,
    named_member,
    named_newest,
    named_range,
    named_total,
)
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
# The names of an item's members, its numbers and its commas.
_ITEM_BYTES: Final = 128
_NOTHING: Final = Blob.json([])
# There are a few dozen; whatever a command did, its patches are among them.
_PATCHES_KEPT_MAX: Final = 256
_SETTINGS: Final = ("/settingsScopes", "/settingsStart", "/settingsTotal")
_FOLLOW_UPS: Final = ("/followUpQueue", "/followUpStart", "/followUpTotal")
_MESSAGES: Final = ("/workflowMessages", "/workflowMessageStart", "/workflowMessageTotal")
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
    if not change.is_capture:
        yield Delta("summary", "", _replaced(_summary(change)))
    if change.own:
        yield Delta("graph", "", _replaced(_graph(change)))
    if change.settled or change.has_links:
        yield Delta("replay", "steps:reload", _replaced(("/stepTotal",)))
    if change.own:
        yield Delta("timeline", "trace:tail", _newest(len(change.own)))
    if change.has_progress:
        yield Delta("inspector", "updates", _replaced(_UPDATES))
    if change.has_settings:
        yield Delta("inspector", "settings", _replaced(_SETTINGS))
    if change.has_follow_ups:
        yield Delta("inspector", "follow_ups", _replaced(_FOLLOW_UPS))
    if change.has_messages:
        yield Delta("inspector", "messages", _replaced(_MESSAGES))
    if change.settled or change.has_ended:
        yield Delta("inspector", "aggregates:reload", _NOTHING)
    yield from _session(change, db)


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
        yield from ("/state/currentAttemptId", "/state/currentNode", "/state/humanDecision")
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


def _session(change: Change, db: Projection) -> Iterator[Delta]:
    """Yield what changed in what is known of the run's sessions."""
    flush = change.flush
    if change.captures:
        yield Delta("conversation", "binding", _whole("/session/binding"))
    if change.has_capture:
        yield Delta("conversation", "capture", _whole("/session/capture"))
    if change.captures or change.ended or (change.has_ended and _is_captured(change, db)):
        yield Delta("conversation", "integrity", _whole("/session/integrity"))
    if flush is not None and flush.entries:
        first, last = flush.entries[0].run_seq, flush.entries[-1].run_seq
        yield Delta("conversation", "entries:tail", _tail("entries", first - 1, last))
    if flush is not None and flush.events:
        first, last = flush.events[0].run_seq, flush.events[-1].run_seq
        yield _events(change.run_id, first - 1, last, db)


def _events(run_id: str, after: int, through: int, db: Projection) -> Delta:
    """Return what a page of session events has to do about more of them.

    One that a boundary lies in, or too many bytes, is asked for again, with its own replay state.
    """
    size = db.one(
        _Bytes,
        SQL["event_bytes"],
        run_id=run_id,
        after=after,
        through=through,
        item_bytes=_ITEM_BYTES,
    )
    assert size is not None, "an aggregate without a row"
    if boundaries(after, through) or size.value > PAGE_BYTES_MAX:
        total = Blob.json([{"op": "replace", "path": "/total", "value": through}])
        return Delta("timeline", "session:reload", total)
    return Delta("timeline", "session:tail", _tail("session_events", after, through))


def _is_captured(change: Change, db: Projection) -> bool:
    """Whether anything of the run's sessions was captured."""
    return db.one(_Found, SQL["is_captured"], run_id=change.run_id) is not None


def _tail(page: PageName, after: int, through: int) -> Blob:
    """Return the patch that puts items at the end of a page."""
    return Blob.json(
        [
            {"op": "append", "path": "/items", "value": named_range(page, after, through)},
            {"op": "replace", "path": "/total", "value": through},
        ]
    )


@lru_cache(_PATCHES_KEPT_MAX)
def _whole(pointer: str) -> Blob:
    """Return the patch that gives a target, which is a member of the view, what it now is."""
    return Blob.json([{"op": "replace", "path": "", "value": named_member(pointer)}])


class _Found(NamedTuple):
    value: int


class _Bytes(NamedTuple):
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
