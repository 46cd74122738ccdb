"""The events of a run as lines: for people in words, for programs as documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.cli.measures import duration, moment
from pi_workflows.cli.run_view import TraceItem

# Which of the server's own steps say nothing to somebody who follows their run.
_INNER: Final = frozenset({"lease.claimed", "lease.released", "run.queue_settled"})
_NO_NODE: Final = "-"


def is_inner(item: TraceItem) -> bool:
    """Whether an event is the server's own business: a claim, a settled queue entry."""
    return item.type in _INNER


def change_document(run_id: str, item: TraceItem) -> dict[str, Json]:
    """Return `pi-workflows.cli-change.v1` without `display`."""
    document: dict[str, Json] = {
        "schema": "pi-workflows.cli-change.v1",
        "runId": run_id,
        "seq": item.seq,
        "at": item.at,
        "type": item.type,
    }
    if item.node_id is not None:
        document["nodeId"] = item.node_id
    return document


def change_line(run_id: str, item: TraceItem) -> str:
    """Return an event as one line: date, time, run, number, type, node, words."""
    words = described(item)
    line = f"{moment(item.at)}  {run_id}  {item.seq}  {item.type}  {item.node_id or _NO_NODE}"
    return f"{line}  {words}" if words else line


def described(item: TraceItem) -> str:
    """Return what an event says beyond its type; empty when that is all."""
    describe = _WORDS.get(item.type)
    return describe(item.payload) if describe is not None else ""


def outcome_words(outcome: Json) -> str:
    """Return how an attempt ended, as people say it."""
    return str(outcome).replace("_", " ")


def _attempt_started(payload: Mapping[str, Json]) -> str:
    visit, attempt = payload.get("visit"), payload.get("attemptNumber")
    return f"{payload.get('nodeType')}, visit {visit}, attempt {attempt}"


def _attempt_settled(payload: Mapping[str, Json]) -> str:
    words = outcome_words(payload.get("outcome"))
    elapsed = payload.get("elapsedMs")
    return f"{words} after {duration(elapsed)}" if isinstance(elapsed, int) else words


def _parked(payload: Mapping[str, Json]) -> str:
    return f"{payload.get('code')}: {payload.get('detail')}"


def _requeued(payload: Mapping[str, Json]) -> str:
    at = payload.get("availableAt")
    later = f", not before {moment(at)}" if isinstance(at, int) else ""
    return f"{payload.get('reason')}{later}"


def _queued(payload: Mapping[str, Json]) -> str:
    title = payload.get("title")
    name = str(payload.get("workflowName"))
    return f"{name}: {title}" if isinstance(title, str) else name


def _member(name: str) -> Callable[[Mapping[str, Json]], str]:
    def describe(payload: Mapping[str, Json]) -> str:
        return str(payload.get(name) or "")

    return describe


_WORDS: Final[Mapping[str, Callable[[Mapping[str, Json]], str]]] = {
    "run.queued": _queued,
    "run.requeued": _requeued,
    "run.parked": _parked,
    "run.worker_no_progress": _parked,
    "run.source_changed": _parked,
    "run.effect_ambiguous": _parked,
    "run.paused": _member("detail"),
    "run.waiting": _member("kind"),
    "lease.released": _member("reason"),
    "request.submitted": _member("outcome"),
    "update.recorded": lambda payload: f"{payload.get('type')} {payload.get('key')}",
    "attempt.started": _attempt_started,
    "attempt.settled": _attempt_settled,
}
