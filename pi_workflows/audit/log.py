"""The log of a file as people read it: each event with its run, its node and what it says."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from pi_workflows.audit.reading import FileReader
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Corrupt, WrongUsage
from pi_workflows.base.limits import EVENTS_SLICE_MAX, REVISION_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.effect.events import (
    EffectAttemptStarted,
    EffectClosed,
    EffectEvent,
    EffectRecovered,
    EffectReserved,
)
from pi_workflows.domain.effect.state import EffectPayload
from pi_workflows.domain.events import EVENTS, decode
from pi_workflows.domain.fact import Event
from pi_workflows.kernel.ownership import runs_of
from pi_workflows.kernel.tree import resources_of
from pi_workflows.store.inactive import open_inactive
from pi_workflows.views.items import attempt_of, node_of, trace_item

SQL: Final = load(__package__, "log.sql")

# Runs, attempts and effects that are remembered while events go by: neighbours share them.
_REMEMBERED: Final = 4_096


class _Row(NamedTuple):
    event_seq: int
    recorded_at: int
    event_type: str
    actor_type: str
    resource_id: str
    resource_revision: int
    resource_type: str | None
    aggregate_key: str | None
    content: bytes | None


class _Effect(NamedTuple):
    effect_type: str
    payload_hash: bytes | None


class _Neighbours(NamedTuple):
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """One event.

    Attributes:
        event_seq: Its number.
        at_ms: When it was recorded.
        actor_type: The class of who caused it; never who exactly.
        event_type: Its type.
        resource_type: The type of the resource that it belongs to; None when that is missing.
        resource_key: The resource's key, such as a run's or an effect's ID.
        revision: The resource's revision.
        run_id: The run that it belongs to, itself or by an effect; None without one.
        node_id: The node that it is about; None of an event of the run as a whole.
        attempt_id: The attempt that it is about.
        command: The name of the command that caused it; None when it cannot be read.
        payload: What it says: facts, and of a value that it is stored. None when what is stored is
            no event of its type.
    """

    event_seq: int
    at_ms: int
    actor_type: str
    event_type: str
    resource_type: str | None
    resource_key: str | None
    revision: int
    run_id: str | None
    node_id: str | None
    attempt_id: str | None
    command: str | None
    payload: dict[str, Json] | None


class FileLog:
    """The log of one moment of a database.

    Attributes:
        reader: Answers what one asks about runs.
        chars_needed: How many characters of a run's ID tell it from every other one.

    Args:
        read: The moment.
    """

    def __init__(self, read: Read) -> None:
        """Begin to read; what goes by is remembered for as long as this object lives."""
        self.reader = FileReader(read)
        self._read = read
        self._run_of = lru_cache(_REMEMBERED)(self._find_run)
        self._node_of = lru_cache(_REMEMBERED)(self._find_node)
        self._effect_of = lru_cache(_REMEMBERED)(self._find_effect)
        self.chars_needed = lru_cache(_REMEMBERED)(self._chars_needed)

    def slices(
        self,
        *,
        run_id: str | None = None,
        types: Sequence[str] | None = None,
        from_seq: int = 0,
        to_seq: int = REVISION_MAX,
    ) -> Iterator[list[LoggedEvent]]:
        """Give events in their order, some hundred at a time.

        Args:
            run_id: Only those of this run and of its effects.
            types: Only those of these types, of `EVENT_TYPES`.
            from_seq: Only those from this number on.
            to_seq: Only those up to this number.

        Raises:
            Corrupt: The file cannot be read.
            Unavailable: The disk failed.
        """
        resources = None if run_id is None else _listed(resources_of(self._read, (run_id,)))
        while True:
            rows = self._read.all(
                _Row,
                SQL["slice"],
                from_seq=from_seq,
                to_seq=to_seq,
                types=None if types is None else _listed(types),
                resources=resources,
                slice=EVENTS_SLICE_MAX,
            )
            yield [self._event(row) for row in rows]
            if len(rows) < EVENTS_SLICE_MAX:
                return
            from_seq = rows[-1].event_seq + 1

    def _event(self, row: _Row) -> LoggedEvent:
        """Return a row as an event; what cannot be read is told as that."""
        run_id = self._run_of(row.resource_id)
        try:
            fact = decode(row.event_type, row.content or b"")
            payload, node_id = self._said(row, fact)
        except Corrupt:
            fact, payload, node_id = None, None, None
        return LoggedEvent(
            event_seq=row.event_seq,
            at_ms=row.recorded_at,
            actor_type=row.actor_type,
            event_type=row.event_type,
            resource_type=row.resource_type,
            resource_key=row.aggregate_key,
            revision=row.resource_revision,
            run_id=run_id,
            node_id=node_id,
            attempt_id=None if fact is None else attempt_of(fact),
            command=None if fact is None or fact.command is None else fact.command.name,
            payload=payload,
        )

    def _said(self, row: _Row, fact: Event) -> tuple[dict[str, Json], str | None]:
        """Return what an event says, and the node that it is about."""
        if isinstance(fact, EffectReserved | EffectEvent):
            return self._effect_payload(fact, fact.effect.effect_id)
        attempt_id = attempt_of(fact)
        node_id = node_of(fact)
        if node_id is None and attempt_id is not None:
            node_id = self._node_of(attempt_id)
        item = trace_item("", row.resource_revision, row.recorded_at, fact)
        payload = item["payload"]
        assert isinstance(payload, dict)
        return payload, node_id

    def _effect_payload(
        self, fact: EffectReserved | EffectEvent, effect_id: str
    ) -> tuple[dict[str, Json], str | None]:
        """Return what an event of an effect says, and the node whose effect it is."""
        effect_type, payload = self._effect_of(effect_id)
        said: dict[str, Json] = {"effectId": effect_id, "effectType": effect_type}
        if payload is not None:
            said |= {"visit": payload.visit, "recovery": payload.recovery}
        said |= _effect_change(fact)
        return said, None if payload is None else payload.node_path

    def _find_run(self, resource_id: str) -> str | None:
        """Return the run that a resource belongs to."""
        found = runs_of((self._read,), "resources", {"resource_id": resource_id})
        return found[0] if found else None

    def _find_node(self, attempt_id: str) -> str | None:
        """Return the node of an attempt."""
        return self._read.one(str, SQL["attempt_node"], attempt_id=attempt_id)

    def _find_effect(self, effect_id: str) -> tuple[str | None, EffectPayload | None]:
        """Return the type of an effect, and what it is about where that can be read."""
        row = self._read.one(_Effect, SQL["effect"], effect_id=effect_id)
        if row is None or row.payload_hash is None:
            return None if row is None else row.effect_type, None
        try:
            return row.effect_type, self._read.document(EffectPayload.parse, row.payload_hash)
        except (Corrupt, ValueError):
            return row.effect_type, None

    def _chars_needed(self, run_id: str) -> int:
        """Return how many characters of a run's ID tell it from every other one."""
        row = self._read.one(_Neighbours, SQL["neighbours"], run_id=run_id)
        near = [each for each in (row or ()) if each is not None]
        return max((_common(run_id, each) + 1 for each in near), default=0)


@contextmanager
def reading_log(file: Path, *, live_directory: Path | None) -> Generator[FileLog]:
    """Read the log of a database that no server has open for as long as the body runs.

    Args:
        file: The database; nothing is written into it.
        live_directory: The state directory, whose database is refused by any path.

    Raises:
        NotFound: There is no such file.
        AuthorityDenied: It is the live database, or is not self-contained.
        Incompatible: It is not our database.
        Corrupt: It is damaged.
        Unavailable: The disk failed.
    """
    with open_inactive(file, live_directory=live_directory) as read:
        yield FileLog(read)


def matching_types(typed: str) -> tuple[str, ...]:
    """Return the types of events that a person means.

    Args:
        typed: A type, or a family of them: `run.` or `run`.

    Raises:
        WrongUsage: `eventTypeUnknown`: there are none; the message names those there are.
    """
    family = f"{typed.removesuffix('.')}."
    found = tuple(each for each in EVENTS if each == typed or each.startswith(family))
    if not found:
        raise WrongUsage(
            f"--type: there is no event type {typed}. Known: {', '.join(sorted(EVENTS))}.",
            code="eventTypeUnknown",
            field="--type",
        )
    return found


def _effect_change(fact: EffectReserved | EffectEvent) -> dict[str, Json]:
    """Return what an event of an effect changed."""
    said: dict[str, Json] = {"status": fact.effect.status}
    if fact.effect.next_attempt_at is not None:
        said["availableAt"] = fact.effect.next_attempt_at
    for name, digest in (
        ("result", fact.effect.result_hash),
        ("error", fact.effect.error_hash),
        ("evidence", fact.evidence_hash if isinstance(fact, EffectRecovered) else None),
    ):
        if digest is not None:
            said[f"{name}Stored"] = True
    match fact:
        case EffectAttemptStarted(attempt=started):
            said["tryNumber"] = started.attempt_number
        case EffectClosed(attempt=finished) if finished is not None:
            said |= {"tryNumber": finished.attempt_number, "outcome": finished.outcome}
        case EffectRecovered():
            said["action"] = fact.action
        case _:
            pass
    return said


def _common(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _listed(values: Sequence[str]) -> str:
    """Return values as the JSON text that a statement reads them from."""
    listed: list[Json] = list(values)
    return canonical.encode(listed).decode()
