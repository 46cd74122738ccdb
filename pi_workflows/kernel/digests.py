"""What only content tells: digests recomputed, payloads parsed, values held to be JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple, cast

from pi_workflows.base import canonical
from pi_workflows.base.errors import Corrupt, PayloadInvalid
from pi_workflows.base.limits import SESSION_CHECKPOINT_EVENTS, VALUE_DEPTH_MAX
from pi_workflows.base.sql import load
from pi_workflows.domain.events import EVENTS, decode, named_blobs
from pi_workflows.domain.session.checkpoints import session_event
from pi_workflows.domain.session.journal import EntryRow, EventRow, Kept, kept_entry, kept_event
from pi_workflows.domain.session.reducer import ReplayState, fold
from pi_workflows.kernel.findings import Findings
from pi_workflows.kernel.progress import counted
from pi_workflows.kernel.rules import EVENT_SHAPE, Owner
from pi_workflows.store.capture import EMPTY_DIGEST, entry_digest
from pi_workflows.store.log import stored_event_digest
from pi_workflows.store.receipts import receipt_digest
from pi_workflows.store.records import StoredEvent
from pi_workflows.store.snapshot import Snapshot

SQL: Final = load(__package__, "digests.sql")

JOURNAL_DIGEST: Final = ("journalDigest", "A receipt or a captured session is another one")
BLOB_DIGEST: Final = ("blobDigest", "A stored value is not the one its digest names")
BLOB_MEDIA: Final = ("blobMedia", "A stored value is not what its media type says")
EVENT_DIGEST: Final = ("eventDigest", "An event is not the one its digest names")
EVENT_BLOBS: Final = ("eventBlobs", "An event's links are not the values that it names")
CHECKPOINTS: Final = ("checkpoints", "A replay state is not the one that its events lead to")
VIEWER: Final = ("viewer", "A patch of a view has an unknown operation")

_Progress = Callable[[int], None]
_Runs = Callable[[], Iterable[str]]
_PATCH_OPERATIONS: Final = frozenset({"add", "replace", "remove", "append"})
_JSON: Final = "application/json"
_TEXT: Final = "text/plain"


class _ClientReceipt(NamedTuple):
    request_id: str
    client_id: str
    operation: str
    idempotency_key: str
    request_fingerprint: bytes
    accepted_revision: int | None
    outcome: str
    receipt_hash: bytes | None
    error_hash: bytes | None
    host_epoch: int
    created_at: int
    completed_at: int
    row_digest: bytes
    run_id: str | None


class _RunnerReceipt(NamedTuple):
    worker_epoch: str
    message_id: str
    request_fingerprint: bytes
    outcome: str
    accepted_revision: int | None
    result_hash: bytes | None
    error_hash: bytes | None
    completed_at: int
    row_digest: bytes
    run_id: str | None


class _Capture(NamedTuple):
    segment_id: str
    run_id: str
    entry_digest: bytes
    event_digest: bytes


class _FoldedEvent(NamedTuple):
    run_id: str
    run_seq: int
    event_type: str
    message_id: str | None
    tool_call_id: str | None
    content: bytes


class _State(NamedTuple):
    event_seq: int
    state_hash: bytes


class _Blob(NamedTuple):
    digest: bytes
    media_type: str
    byte_length: int
    content: bytes


class _ViewContent(NamedTuple):
    run_id: str
    digest: bytes
    content: bytes


class _Payload(NamedTuple):
    event_seq: int
    resource_id: str
    payload: bytes | None


class _Link(NamedTuple):
    event_seq: int
    digest: bytes


class _Patch(NamedTuple):
    run_id: str
    content: bytes


def check_journals(source: Snapshot, found: Findings, progress: _Progress) -> None:
    """Note every receipt and every capture whose digest is not that of its rows."""
    clients = source.each(_ClientReceipt, SQL["client_receipts"])
    runners = source.each(_RunnerReceipt, SQL["runner_receipts"])
    receipts = chain[_ClientReceipt | _RunnerReceipt](clients, runners)
    for receipt in counted(receipts, progress):
        if not _gives(receipt.row_digest, partial(receipt_digest, receipt._asdict())):
            found.add(*JOURNAL_DIGEST, partial(Owner(receipt.run_id).runs, source))
    for capture in source.each(_Capture, SQL["captures"]):
        key = {"segment_id": capture.segment_id}
        entries = source.each(kept_entry, SQL["captured_entries"], **key)
        events = source.each(kept_event, SQL["captured_events"], **key)
        is_sound = _gives(capture.entry_digest, partial(_running, counted(entries, progress)))
        if not is_sound or not _gives(
            capture.event_digest, partial(_running, counted(events, progress))
        ):
            found.add(*JOURNAL_DIGEST, partial(Owner(capture.run_id).runs, source))


def _gives(digest: bytes, compute: Callable[[], bytes]) -> bool:
    """Whether a digest is computed again. A number that no JSON holds has none: it was not written.

    SQLite's integers have eleven bits more than those of canonical JSON.
    """
    try:
        return compute() == digest
    except PayloadInvalid:
        return False


def _running(rows: Iterable[Kept[EntryRow] | Kept[EventRow]]) -> bytes:
    """Return the running digest over the rows of a capture."""
    digest = EMPTY_DIGEST
    for row in rows:
        digest = entry_digest(digest, row.columns)
    return digest


def check_checkpoints(source: Snapshot, found: Findings, progress: _Progress) -> None:
    """Note every replay state of a session that is not the one that its events lead to."""
    events = source.each(_FoldedEvent, SQL["folded_events"])
    for run_id, rows in groupby(counted(events, progress), itemgetter(0)):
        states = dict(source.all(_State, SQL["checkpoints"], run_id=run_id))
        if not all(states.get(seq) == digest for seq, digest in _states(rows)):
            found.add(*CHECKPOINTS, partial(Owner(run_id).runs, source))


def _states(rows: Iterable[_FoldedEvent]) -> Iterator[_State]:
    """Yield the state at each boundary of one run's events, folded from the first of them."""
    state = ReplayState()
    for _, group in groupby(rows, lambda row: (row.run_seq - 1) // SESSION_CHECKPOINT_EVENTS):
        state = fold(state, (session_event(*row[1:]) for row in group)).reduced()
        if state.through_seq % SESSION_CHECKPOINT_EVENTS == 0:
            yield _State(state.through_seq, state.blob().digest)


def check_blobs(source: Snapshot, found: Findings, progress: _Progress) -> None:
    """Note every stored value whose bytes are not those that its digest and media type name."""
    for blob in counted(source.each(_Blob, SQL["blobs"]), progress):
        # SQLite holds no CHECK of a file that it may only read, so the length is compared here.
        is_whole = len(blob.content) == blob.byte_length
        if not is_whole or hashlib.sha256(blob.content).digest() != blob.digest:
            found.add(*BLOB_DIGEST, partial(_users, source, blob.digest))
        elif not _fits(blob):
            found.add(*BLOB_MEDIA, partial(_users, source, blob.digest))
    for view in counted(source.each(_ViewContent, SQL["view_content"]), progress):
        if hashlib.sha256(view.content).digest() != view.digest:
            found.add(*BLOB_DIGEST, partial(Owner(view.run_id).runs, source))


def _fits(blob: _Blob) -> bool:
    """Whether a value is canonical JSON or UTF-8, as its media type says."""
    if blob.media_type == _JSON:
        return _is_canonical(blob.content)
    if blob.media_type != _TEXT:
        return False
    try:
        blob.content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_canonical(content: bytes) -> bool:
    """Whether bytes are canonical JSON."""
    try:
        canonical.decode_canonical(content, depth_max=VALUE_DEPTH_MAX)
    except PayloadInvalid:
        return False
    return True


def _users(source: Snapshot, digest: bytes) -> Iterator[str]:
    """Yield the runs whose rows name a value."""
    for owner in source.all(Owner, SQL["users"], digest=digest):
        yield from owner.runs(source)


def check_links(source: Snapshot, found: Findings, progress: _Progress) -> None:
    """Note every event whose payload is missing, or whose links are not what the payload names."""
    links = _Links(source.each(_Link, SQL["links"]))
    for event in counted(source.each(_Payload, SQL["payloads"]), progress):
        runs = partial(Owner(None, event.resource_id).runs, source)
        _check_link(links.of(event.event_seq), event.payload, found, runs)


def check_events(source: Snapshot, found: Findings, progress: _Progress) -> None:
    """Note every event whose digest, payload or links are not what the event says."""
    links = _Links(source.each(_Link, SQL["links"]))
    for previous, event in counted(source.each(_event, SQL["events"]), progress):
        runs = partial(Owner(None, event.resource_id).runs, source)
        if not _gives(event.event_digest, partial(stored_event_digest, event, previous)):
            found.add(*EVENT_DIGEST, runs)
        linked = links.of(event.event_seq)
        if _is_of_its_type(event):
            _check_link(linked, event.payload, found, runs)
        else:
            found.add(*EVENT_SHAPE, runs)


def _event(previous: bytes | None, *columns: Any) -> tuple[bytes | None, StoredEvent]:
    """Shape an event with the digest that it continues."""
    return previous, StoredEvent._make(columns)


def _is_of_its_type(event: StoredEvent) -> bool:
    """Whether an event's payload is one of its type; an unknown type is another check's finding."""
    if event.event_type not in EVENTS or cast("object", event.payload) is None:
        return True
    try:
        decode(event.event_type, event.payload)
    except Corrupt:
        return False
    return True


def _check_link(linked: list[bytes], payload: bytes | None, found: Findings, runs: _Runs) -> None:
    """Note a payload that is missing or names what is no digest, and links to other values."""
    try:
        names = None if payload is None else list(named_blobs(payload))
    except ValueError:
        names = None
    if names is None:
        found.add(*EVENT_SHAPE, runs)
    elif linked != names:
        found.add(*EVENT_BLOBS, runs)


class _Links:
    """The links of events, read along with the events."""

    def __init__(self, links: Iterator[_Link]) -> None:
        self._groups = groupby(links, itemgetter(0))
        self._next = next(self._groups, None)

    def of(self, event_seq: int) -> list[bytes]:
        """Return the links of an event, in order; each call is for a later event."""
        while self._next is not None and self._next[0] < event_seq:
            self._next = next(self._groups, None)
        if self._next is None or self._next[0] != event_seq:
            return []
        return [link.digest for link in self._next[1]]


def runs_at(source: Snapshot, event_seq: int) -> tuple[str, ...]:
    """Return the runs of an event, or of the first after it."""
    resource_id = source.one(str, SQL["next_resource"], event_seq=event_seq)
    return tuple(Owner(None, resource_id).runs(source))


def check_patches(source: Snapshot, found: Findings, progress: _Progress) -> None:
    """Note every patch of a view with an operation that no reader knows."""
    for patch in counted(source.each(_Patch, SQL["patches"]), progress):
        if not _is_patch(patch.content):
            found.add(*VIEWER, partial(Owner(patch.run_id).runs, source))


def _is_patch(content: bytes) -> bool:
    """Whether a stored value is a list of operations that readers know."""
    try:
        patch = canonical.decode(content)
    except PayloadInvalid:
        return False
    return isinstance(patch, list) and all(
        isinstance(step, dict) and step.get("op") in _PATCH_OPERATIONS for step in patch
    )
