"""What was captured of a run's Pi sessions: settled entries, timed events, and how far they go.

The client protocol, sections 6 and 11. Pages go over all captures of a run; the binding and the
state are those of its newest capture.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Corrupt
from pi_workflows.base.limits import CARRIED_BYTES_MAX, INLINE_BYTES_MAX, PAGE_BYTES_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.run.state import TERMINAL
from pi_workflows.domain.session.checkpoints import state_at
from pi_workflows.domain.session.records import stored_payload
from pi_workflows.domain.session_rows import SegmentStatus
from pi_workflows.views.content import stored_value
from pi_workflows.views.facts import RunFacts
from pi_workflows.views.page import Page, around, window
from pi_workflows.views.value import Value, embedded, marked

SQL: Final = load(__package__, "capture.sql")


class Capture(NamedTuple):
    """A run's newest capture."""

    status: SegmentStatus
    entry_count: int
    event_count: int
    binding_hash: bytes | None
    failure_hash: bytes | None
    created_at: int


class _Sums(NamedTuple):
    recording: int
    failed: int
    entries: int
    events: int


class _Total(NamedTuple):
    value: int


class _EntryRow(NamedTuple):
    seq: int
    at_ms: int
    digest: bytes
    media_type: str
    byte_length: int
    content: bytes | None


class _EventRow(NamedTuple):
    seq: int
    at_ms: int
    node_id: str | None
    attempt_id: str | None
    turn_id: str | None
    message_id: str | None
    tool_call_id: str | None
    event_type: str
    digest: bytes
    media_type: str
    byte_length: int
    content: bytes | None


def newest_capture(read: Read, run_id: str) -> Capture | None:
    """Return a run's newest capture, None when nothing was captured."""
    return read.one(Capture, SQL["newest"], run_id=run_id)


def session_member(read: Read, facts: RunFacts, page_bytes: int) -> dict[str, Json]:
    """Return the `session` member of a run view.

    Args:
        read: The view's read.
        facts: The run.
        page_bytes: Bytes of the items of a page.
    """
    capture = newest_capture(read, facts.run_id)
    if capture is None:
        return {
            "binding": None,
            "entryPage": _window(Page(0, 0, ())),
            "eventPage": _window(Page(0, 0, ())),
            "capture": None,
            "integrity": _SOUND,
            "replayCheckpoint": None,
        }
    events = events_page(read, facts.run_id, None, page_bytes)
    return {
        "binding": binding_document(read, facts.run_id, capture),
        "entryPage": _window(entries_page(read, facts.run_id, None, page_bytes)),
        "eventPage": _window(events),
        "capture": capture_document(read, capture),
        "integrity": integrity_document(read, facts),
        "replayCheckpoint": replay_checkpoint(read, facts.run_id, events.start),
    }


def binding_document(read: Read, run_id: str, capture: Capture | None) -> Json:
    """Return what a capture is of: `pi-workflows.session-binding.v1`."""
    if capture is None or capture.binding_hash is None:
        return None
    binding = canonical.decode(read.blob(capture.binding_hash))
    if not isinstance(binding, dict):
        raise Corrupt("What a session is bound to is not an object.")
    return {
        **binding,
        "schema": "pi-workflows.session-binding.v1",
        "runId": run_id,
        "boundAt": capture.created_at,
    }


def capture_document(read: Read, capture: Capture | None) -> Json:
    """Return how far a capture goes: `pi-workflows.session-capture.v1`."""
    if capture is None:
        return None
    document: dict[str, Json] = {
        "schema": "pi-workflows.session-capture.v1",
        "eventSchema": "pi-workflows.session-event.v1",
        "status": capture.status,
        "eventCount": capture.event_count,
        "entryCount": capture.entry_count,
        "lastEventSeq": capture.event_count,
    }
    if capture.failure_hash is not None:
        document["failure"] = embedded(read, stored_value(read, capture.failure_hash))
    return document


def integrity_document(read: Read, facts: RunFacts) -> Json:
    """Return whether what was captured of a run is whole.

    Gaps cannot be stored, and a capture is complete only with everything that it names.
    """
    sums = read.one(_Sums, SQL["sums"], run_id=facts.run_id)
    assert sums is not None, "an aggregate without a row"
    found: list[Json] = []
    if sums.recording and facts.status in TERMINAL:
        found.append(_diagnostic("captureOpen", "The run has ended, and its capture has not."))
    if sums.failed:
        found.append(_diagnostic("captureFailed", "A capture failed: something may be missing."))
    stored = (_total(read, "entry_total", facts.run_id), _total(read, "event_total", facts.run_id))
    if stored != (sums.entries, sums.events):
        found.append(_diagnostic("captureCount", "A capture is not as long as it says."))
    return {"status": "invalid", "diagnostics": found} if found else _SOUND


def entries_page(
    read: Read, run_id: str, cursor: int | None, bytes_max: int = PAGE_BYTES_MAX
) -> Page:
    """Return a window of a run's entries.

    Args:
        read: The view's read.
        run_id: The run.
        cursor: The index of an entry, from 0; None is the last.
        bytes_max: Bytes of the items.
    """
    total = _total(read, "entry_total", run_id)
    places = window(total, cursor)
    return around(total, cursor, entry_items(read, run_id, places.start, places.stop), bytes_max)


def events_page(
    read: Read, run_id: str, cursor: int | None, bytes_max: int = PAGE_BYTES_MAX
) -> Page:
    """Return a window of a run's session events, as `entries_page`."""
    total = _total(read, "event_total", run_id)
    places = window(total, cursor)
    return around(total, cursor, event_items(read, run_id, places.start, places.stop), bytes_max)


def replay_checkpoint(read: Read, run_id: str, start: int) -> Json:
    """Return the replay state just before a page of session events.

    Args:
        read: The view's read.
        run_id: The run.
        start: The index of the page's first item, which is the number of the event before it.

    Returns:
        The state; None before the first event. One that is too large for its place is reduced to
        what is open, the oldest of which goes first.
    """
    if start == 0:
        return None
    state = state_at(read, run_id, start)
    if len(state.blob().content) > INLINE_BYTES_MAX:
        state = state.reduced()
    while len(state.blob().content) > INLINE_BYTES_MAX:
        kept = {"messages": state.messages[1:]} if state.messages else {"tools": state.tools[1:]}
        state = state.model_copy(update=kept)
    return state.document()


def entry_items(read: Read, run_id: str, after: int, through: int) -> list[Json]:
    """Return the entries of a run after a number, through another one."""
    rows = read.all(
        _EntryRow,
        SQL["entries"],
        run_id=run_id,
        after=after,
        through=through,
        carried_bytes=CARRIED_BYTES_MAX,
    )
    return [{"seq": row.seq, "at": row.at_ms, "entry": _value(read, row)} for row in rows]


def event_items(read: Read, run_id: str, after: int, through: int) -> list[Json]:
    """Return the session events of a run after a number, through another one."""
    rows = read.all(
        _EventRow,
        SQL["events"],
        run_id=run_id,
        after=after,
        through=through,
        carried_bytes=CARRIED_BYTES_MAX,
    )
    return [_event_item(read, row) for row in rows]


def _event_item(read: Read, row: _EventRow) -> dict[str, Json]:
    """Return an event: the time is the recorder's, and what it was not told is left out."""
    content = row.content if row.content is not None else read.blob(row.digest)
    at_ms, payload = stored_payload(content, row.at_ms)
    item: dict[str, Json] = {
        "seq": row.seq,
        "at": at_ms,
        "type": row.event_type,
        "payload": marked(payload),
    }
    if row.byte_length > INLINE_BYTES_MAX:
        item["payload"] = _value(read, row)
    names = {
        "nodeId": row.node_id,
        "attemptId": row.attempt_id,
        "turnId": row.turn_id,
        "messageId": row.message_id,
        "toolCallId": row.tool_call_id,
    }
    item.update((name, value) for name, value in names.items() if value is not None)
    return item


def _value(read: Read, row: _EntryRow | _EventRow) -> Json:
    """Return the value that a row names."""
    value = Value.of(row.digest, row.media_type, row.byte_length, row.content)
    return embedded(read, value)


def _total(read: Read, name: str, run_id: str) -> int:
    """Return how many entries, or events, a run has."""
    found = read.one(_Total, SQL[name], run_id=run_id)
    return found.value if found is not None else 0


def _window(page: Page) -> Json:
    """Return a page as it stands in a view."""
    return {"start": page.start, "total": page.total, "items": page.documents}


def _diagnostic(code: str, message: str) -> Json:
    """Return what is wrong with a capture."""
    return {"code": code, "message": message}


_SOUND: Final[Json] = {"status": "valid", "diagnostics": []}
