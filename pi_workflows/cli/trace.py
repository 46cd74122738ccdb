"""The events of a run as lines: for people in words, for programs as documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.measures import MOMENT_CHARS, duration, moment
from pi_workflows.cli.paragraph import wrapped
from pi_workflows.cli.picture import failure_line
from pi_workflows.cli.progress import progress_line
from pi_workflows.cli.run_view import RunView, TraceItem

# Which of the server's own steps say nothing to somebody who follows their run.
_INNER: Final = frozenset({"lease.claimed", "lease.released", "run.queue_settled"})
_NO_NODE: Final = "-"
_NODE_CHARS_MAX: Final = 32
# What programs may want of a payload, by the name that it has there.
_MEMBERS: Final[Mapping[str, str]] = {
    "visit": "visit",
    "attemptNumber": "attemptNumber",
    "elapsedMs": "durationMs",
    "code": "errorCode",
}


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
    for member, name in _MEMBERS.items():
        if member in item.payload:
            document[name] = item.payload[member]
    outcome = item.payload.get("outcome" if item.type == "attempt.settled" else "status")
    if outcome is not None:
        document["outcome"] = outcome
    return document


@dataclass(frozen=True, slots=True)
class Columns:
    """How wide the columns of a list of events are.

    Attributes:
        run: Of the run's ID; 0 leaves it out, where all are of one run.
        seq: Of the number.
        type: Of the type.
        node: Of the node.
    """

    run: int = 0
    seq: int = 4
    type: int = 19
    node: int = 0

    @classmethod
    def of(cls, view: RunView, *, run: int = 0) -> Columns:
        """Return the columns that fit a run."""
        widest = max(map(len, view.workflow.nodes), default=0)
        return cls(run=run, node=min(_NODE_CHARS_MAX, widest))


def change_lines(
    run_id: str, item: TraceItem, columns: Columns, words: str, *, window: int | None = None
) -> list[str]:
    """Return an event as safe lines: date, time, run, number, type, node, words.

    Args:
        run_id: The run.
        item: The event.
        columns: Where things stand.
        words: What the event says beyond its type.
        window: How wide the window is; words that do not fit beside their event stand below its
            type. None, in a pipe, keeps an event in one line.
    """
    run = f"{run_id:<{columns.run}}  " if columns.run else ""
    before = escaped(f"{moment(item.at):<{MOMENT_CHARS}}  {run}{item.seq:>{columns.seq}}  ")
    node = item.node_id or _NO_NODE
    place = escaped(f"{item.type:<{columns.type}}  {node:<{columns.node}}")
    text = escaped(words)
    whole = f"{before}{place}  {text}".rstrip()
    if window is None or not text or len(whole) <= window:
        return [whole]
    below = wrapped(text, window, indent=len(before))
    return [f"{before}{place}".rstrip(), *(f"{' ' * len(before)}{line}" for line in below)]


def described(
    item: TraceItem, view: RunView | None = None, errors: Mapping[str, Json] | None = None
) -> str:
    """Return what an event says beyond its type; empty when that is all.

    Args:
        item: The event.
        view: The run at that time or later; it has progress, and why nodes failed.
        errors: Stored errors of attempts that may be older than the newest of their node.
    """
    update = next((each for each in view.updates if each.seq == item.seq), None) if view else None
    if update is not None:
        return progress_line(update.type, update.key, update.data, has_unicode=False)
    describe = _WORDS.get(item.type)
    words = describe(item.payload) if describe is not None else ""
    again_ms = item.payload.get("availableAt")
    if item.type == "run.requeued" and isinstance(again_ms, int) and again_ms > item.at:
        words = f"{words}; not again before {moment(again_ms)}"
    if words == item.type.partition(".")[2]:
        # A pause whose detail is only "paused".
        return ""
    if item.type != "attempt.settled" or "errorStored" not in item.payload:
        return words
    error = (errors or {}).get(item.attempt_id or "")
    if error is None and view is not None:
        error = _newest_error(view, item)
    return words if error is None else f"{words}: {failure_line(error)}"


def _newest_error(view: RunView, item: TraceItem) -> Json:
    """Return why an attempt failed, while it is the newest settled one of its node."""
    is_newest = any(step.attempt_id == item.attempt_id for step in view.graph_steps)
    result = view.state.results.get(item.node_id or "") if is_newest else None
    return None if result is None else result.error


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
    "run.requeued": _member("reason"),
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
