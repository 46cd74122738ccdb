"""`state verify`: what must hold in a database, checked and reported, never repaired."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from pi_workflows.base import canonical, ids
from pi_workflows.base.errors import Corrupt, PayloadInvalid
from pi_workflows.base.limits import VIOLATION_RUNS_MAX
from pi_workflows.base.sql import SqlValue, Statement, load
from pi_workflows.domain.events import EVENTS, decode
from pi_workflows.kernel import comparison
from pi_workflows.kernel.projectors import Projectors
from pi_workflows.kernel.rebuild import named, rebuild
from pi_workflows.store.inactive import Scratch
from pi_workflows.store.log import events, stored_event_digest
from pi_workflows.store.receipts import receipt_digest
from pi_workflows.store.records import StoredEvent
from pi_workflows.store.snapshot import Snapshot

SQL: Final = load(__package__, "verify.sql")

# Rows between two looks at the deadline.
_STEP_ROWS: Final = 64


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that does not hold.

    Attributes:
        code: A stable identifier (state contract, section 5).
        run_ids: The runs it concerns, at most 100, in order.
        count: How many rows violate it.
        explanation: One line for people.
    """

    code: str
    run_ids: tuple[str, ...]
    count: int
    explanation: str


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of one check.

    Attributes:
        violations: In the order of the checks; none in a sound database.
        checked: The codes that were checked.
        information: Facts that are no violations.
        is_partial: Whether the deadline came before the last check.
    """

    violations: tuple[Violation, ...]
    checked: tuple[str, ...]
    information: dict[str, int] = field(default_factory=dict[str, int])
    is_partial: bool = False

    @property
    def is_valid(self) -> bool:
        """Whether nothing was found."""
        return not self.violations


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that statements can tell: each returned row is a violation."""

    code: str
    explanation: str
    statements: tuple[Statement, ...]


def _check(code: str, explanation: str, *names: str) -> Rule:
    return Rule(code, explanation, tuple(SQL[name] for name in names))


RULES: Final = (
    _check("integrity", "SQLite's own check of the file fails", "integrity"),
    _check("foreignKeys", "A row names another one that does not exist", "foreign_keys"),
    _check("revisionChain", "A resource's events are not 1 to its revision", "revision_gap"),
    _check("resourceOwner", "A row and its resource do not belong together", "resource_orphan"),
    _check("resourceTimes", "A resource's time is not its last event's", "resource_times"),
    _check(
        "leaseRow", "A lease is missing or contradicts the events", "lease_missing", "lease_row"
    ),
    _check("sequence", "The counter of event numbers is behind the log", "sequence"),
    _check("hostState", "A stored server epoch is ahead of the server's own", "host_state"),
    _check("definition", "A definition is not the one its digest names", "definition"),
    _check("queueState", "A run and its queue entry disagree about the end", "queue_state"),
    _check("queueTimes", "A queue entry's end contradicts its status", "queue_times"),
    _check("queueSession", "A queue entry reserves the wrong session", "queue_session"),
    _check("waitingRequest", "A waiting run asks nothing", "waiting_request"),
    _check("lineage", "A restart does not continue its parent's line", "lineage"),
    _check("terminalWork", "A run that ended keeps work open", "terminal_work"),
    _check("terminalData", "A run's error contradicts its end", "terminal_data"),
    _check("runSource", "A run does not say where its workflow came from", "run_source"),
    _check(
        "attemptState",
        "An attempt's end, number or visit is wrong",
        "attempt_settled",
        "attempt_numbers",
    ),
    _check("activeClock", "Active time runs for something that does not work", "active_clock"),
    _check("intervals", "An attempt's intervals are not 1 to N", "interval_numbers"),
    _check("steps", "A run's steps are not 0 to N-1, or name the wrong attempts", "steps"),
    _check("updates", "Progress is not numbered 1 to N, or is ahead of its run", "updates"),
    _check("pendingRequest", "An open question belongs to nothing that waits", "pending_request"),
    _check("acceptedRequest", "A settled question has no accepted answer", "accepted_request"),
    _check("submissions", "An answer contradicts its question", "submissions"),
    _check("requestTarget", "A question goes to the wrong session", "request_target"),
    _check("effectState", "An effect, its tries and its times disagree", "effect_state"),
    _check("effectKey", "A settlement belongs to no queue entry", "settlement"),
    _check("blobMedia", "A value that is read as JSON is stored as text", "media"),
    _check("viewer", "A run's view cursor is missing or wrong", "viewer_cursor"),
    _check("receipts", "A receipt contradicts its outcome or its run", "receipts"),
    _check("workers", "A runner's end or claim contradicts its status", "workers"),
)


def verify(
    source: Snapshot,
    *,
    quick: bool,
    scratch: Callable[[], AbstractContextManager[Scratch]],
    projectors: Projectors,
    progress: Callable[[str, int], None] = lambda _name, _count: None,
    is_over: Callable[[], bool] = lambda: False,
) -> Verification:
    """Check everything that must hold in a database.

    Args:
        source: The database, in one consistent read.
        quick: Leave out digests and the replay of the log.
        scratch: Makes an empty database for the replay, and removes it.
        projectors: The ones that the server uses.
        progress: Called with the name of the check under way and the rows it has read.
        is_over: Whether a deadline has passed; what was found until then is the result.

    Returns:
        The result; a damaged database is a result too.

    Raises:
        Unavailable: The file could not be read.
    """
    found = _Findings()
    # Several finders may look after one code.
    checked: dict[str, None] = {}
    for name, finder in _finders(source, quick, scratch, projectors, progress):
        if is_over():
            return _result(found, tuple(checked), is_partial=True)
        progress(name, 0)
        try:
            finder(found)
        except Corrupt as error:
            # Damage that the check stumbled over: what it could not read is what it found.
            found.add(error.reason_code, error.message, "")
        checked[name] = None
    return _result(found, tuple(checked))


class _Typed(NamedTuple):
    event_type: str
    resource_type: str
    run_id: str


class _StoredBlob(NamedTuple):
    digest: bytes
    media_type: str
    content: bytes


class _EffectKey(NamedTuple):
    effect_id: str
    source_resource_id: str
    effect_type: str
    key: str
    run_id: str


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
    run_id: str


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
    run_id: str


class _Findings:
    """Collects violations by code: a bounded number of runs, and how many there were."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, None]] = {}
        self._counts: dict[str, int] = {}
        self._explanations: dict[str, str] = {}

    def add(self, code: str, explanation: str, run_id: str) -> None:
        """Note one violation; an empty run ID concerns no run."""
        runs = self._runs.setdefault(code, {})
        self._counts[code] = self._counts.get(code, 0) + 1
        self._explanations.setdefault(code, explanation)
        if run_id and len(runs) < VIOLATION_RUNS_MAX:
            runs[run_id] = None

    def violations(self) -> tuple[Violation, ...]:
        """Return what was noted."""
        return tuple(
            Violation(code, tuple(runs), self._counts[code], self._explanations[code])
            for code, runs in self._runs.items()
        )


def _result(
    found: _Findings, checked: tuple[str, ...], *, is_partial: bool = False
) -> Verification:
    """Return the result."""
    return Verification(found.violations(), checked, is_partial=is_partial)


def _finders(
    source: Snapshot,
    quick: bool,  # noqa: FBT001 - passed on
    scratch: Callable[[], AbstractContextManager[Scratch]],
    projectors: Projectors,
    progress: Callable[[str, int], None],
) -> Iterator[tuple[str, Callable[[_Findings], None]]]:
    """Yield each check under its name, cheap ones first."""
    for rule in RULES:
        yield rule.code, partial(_run_rule, source, rule)
    yield "eventShape", lambda found: _event_shapes(source, found)
    yield "effectKey", lambda found: _effect_keys(source, found)
    if quick:
        return
    yield "journalDigest", lambda found: _receipt_digests(source, found)
    yield "blobDigest", lambda found: _blob_digests(source, found, progress)
    yield "eventDigest", lambda found: _event_digests(source, found, progress)
    yield "eventBlobs", lambda found: _event_links(source, found)
    yield "replay", lambda found: _replay(source, scratch, projectors, found, progress)


def _run_rule(source: Snapshot, rule: Rule, found: _Findings) -> None:
    """Note every row that a rule's statements return."""
    for statement in rule.statements:
        for run_id in source.each(str, statement):
            found.add(rule.code, rule.explanation, run_id)


def _event_shapes(source: Snapshot, found: _Findings) -> None:
    """Note every event whose type is unknown, or whose payload is not one of that type."""
    for event_type, resource_type, run_id in source.each(_Typed, SQL["event_types"]):
        if event_type not in EVENTS or not _fits(event_type, resource_type):
            found.add("eventShape", "An event's type is unknown or not its resource's", run_id)


def _fits(event_type: str, resource_type: str) -> bool:
    """Whether events of a type may belong to a resource of a type."""
    family = event_type.partition(".")[0]
    if family == "lease":
        return True
    return (family == "effect") == (resource_type == "effect")


def _effect_keys(source: Snapshot, found: _Findings) -> None:
    """Note every effect whose identity is not derived from its source, type and key."""
    for effect in source.each(_EffectKey, SQL["effect_keys"]):
        derived = ids.effect_id(effect.source_resource_id, effect.effect_type, effect.key)
        if derived != effect.effect_id:
            found.add("effectKey", "An effect's identity is not its own", effect.run_id)


def _receipt_digests(source: Snapshot, found: _Findings) -> None:
    """Note every receipt whose digest is not that of its row."""
    clients = source.each(_ClientReceipt, SQL["client_receipts"])
    runners = source.each(_RunnerReceipt, SQL["runner_receipts"])
    for receipt in chain[_ClientReceipt | _RunnerReceipt](clients, runners):
        columns: dict[str, SqlValue] = receipt._asdict()
        if receipt_digest(columns) != receipt.row_digest:
            found.add("journalDigest", "A receipt is not the one that was given", receipt.run_id)


def _blob_digests(source: Snapshot, found: _Findings, progress: Callable[[str, int], None]) -> None:
    """Note every stored value whose bytes are not the ones its digest names.

    Or not what its media type says.
    """
    for count, blob in enumerate(source.each(_StoredBlob, SQL["blobs"])):
        digest, media_type, content = blob
        if hashlib.sha256(content).digest() != digest:
            found.add("blobDigest", "A stored value is not the one its digest names", "")
        elif media_type == "application/json" and not _is_canonical(content):
            found.add("blobMedia", "A stored value is not canonical JSON", "")
        elif media_type != "application/json" and not _is_text(content):
            found.add("blobMedia", "A stored text is not UTF-8", "")
        if count % _STEP_ROWS == 0:
            progress("blobDigest", count)


def _is_canonical(content: bytes) -> bool:
    """Whether bytes are canonical JSON."""
    try:
        return canonical.encode(canonical.decode(content)) == content
    except PayloadInvalid:
        return False


def _is_text(content: bytes) -> bool:
    """Whether bytes are UTF-8."""
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def _event_digests(
    source: Snapshot, found: _Findings, progress: Callable[[str, int], None]
) -> None:
    """Note every event whose digest is not the one that its columns and its predecessor give."""
    for count, event in enumerate(events(source)):
        before = source.one(
            bytes,
            SQL["previous_digest"],
            resource_id=event.resource_id,
            revision=event.resource_revision - 1,
        )
        if stored_event_digest(event, before) != event.event_digest:
            found.add(
                "eventDigest",
                "An event is not the one its digest names",
                _run_of(source, event.resource_id),
            )
        elif not _is_readable(event):
            found.add(
                "eventShape",
                "An event's payload is not one of its type",
                _run_of(source, event.resource_id),
            )
        if count % _STEP_ROWS == 0:
            progress("eventDigest", count)


def _is_readable(event: StoredEvent) -> bool:
    """Whether an event's payload is one of its type."""
    try:
        decode(event.event_type, event.payload)
    except Corrupt:
        return False
    return True


def _run_of(source: Snapshot, resource_id: str) -> str:
    """Return the run that a resource is, or an empty text."""
    return source.one(str, SQL["run_of_resource"], resource_id=resource_id) or ""


def _event_links(source: Snapshot, found: _Findings) -> None:
    """Note every event whose links are not the blobs that its payload names."""
    for event in events(source):
        linked = source.all(bytes, SQL["linked_blobs"], event_seq=event.event_seq)
        try:
            is_linked = tuple(linked) == named(event)
        except Corrupt:
            # Its shape is another violation.
            continue
        if not is_linked:
            found.add(
                "eventBlobs",
                "An event's links are not the values that it names",
                _run_of(source, event.resource_id),
            )


def _replay(
    source: Snapshot,
    scratch: Callable[[], AbstractContextManager[Scratch]],
    projectors: Projectors,
    found: _Findings,
    progress: Callable[[str, int], None],
) -> None:
    """Note every row that the log does not give again."""
    try:
        with scratch() as target:
            rebuild(source, target, projectors, lambda count: progress("replay", count))
            with target.snapshot() as rebuilt:
                differences = comparison.compare(source, rebuilt)
    except Corrupt as error:
        found.add("replay", error.message, "")
        return
    for difference in differences:
        found.add("replay", "A row is not the one that the log gives", _run_in(difference))


def _run_in(difference: comparison.Difference) -> str:
    """Return the run that a differing row names in its own key, or an empty text."""
    row: Iterable[object] = difference.left or difference.right or ()
    first = next(iter(row), "")
    return first if difference.table in _KEYED_BY_RUN and isinstance(first, str) else ""


_KEYED_BY_RUN: Final = frozenset(
    {"runs", "run_sources", "run_bindings", "run_queue", "run_steps", "viewer_runs"}
)
