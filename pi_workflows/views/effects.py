"""Effects of actions, for those who look at them and decide about them."""

from __future__ import annotations

from collections import defaultdict
from typing import Final, Literal, NamedTuple

from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import (
    EFFECT_DECISIONS_LISTED_MAX,
    EFFECT_EVENTS_READ_MAX,
    EFFECT_TRIES_LISTED_MAX,
    EFFECTS_LISTED_MAX,
    INLINE_BYTES_MAX,
)
from pi_workflows.base.sql import Read, SqlValue, load
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.effect.events import EffectRecovered
from pi_workflows.domain.effect.state import EffectPayload
from pi_workflows.domain.fact import ActorType
from pi_workflows.domain.failure import Failure as StoredFailure
from pi_workflows.domain.rows import EffectStatus, RunStatus
from pi_workflows.protocol.effects import (
    EffectChoice,
    EffectDecision,
    EffectItem,
    EffectItems,
    EffectTry,
)
from pi_workflows.protocol.proposals import Failure
from pi_workflows.views.content import stored_value
from pi_workflows.views.effect_choices import effect_choices
from pi_workflows.views.facts import run_facts
from pi_workflows.views.heads import json_list
from pi_workflows.views.page import forward
from pi_workflows.views.value import embedded

SQL: Final = load(__package__, "effects.sql")

UNSETTLED: Final[tuple[EffectStatus, ...]] = ("pending", "applying", "ambiguous")
"""What is listed when no status is asked for: what may still happen, or may have happened."""


class _EffectId(NamedTuple):
    value: str


class _Count(NamedTuple):
    value: int


# What an effect gave is shown in part only where many effects are listed.
_OUTPUT_BYTES_MAX: Final = 4_096
# Greater than every ID that begins with the same characters.
_AFTER: Final = "\U0010ffff"
_OVER: Final = frozenset({"completed", "failed", "timed_out", "cancelled"})


class _EffectRow(NamedTuple):
    effect_id: str
    run_id: str
    run_status: RunStatus
    run_paused: int
    effect_type: str
    status: EffectStatus
    attempt_count: int
    next_attempt_at: int | None
    payload_hash: bytes
    result_hash: bytes | None
    error_hash: bytes | None
    created_at: int
    updated_at: int


class _TryRow(NamedTuple):
    effect_id: str
    attempt_number: int
    started_at: int
    finished_at: int | None
    outcome: Literal["applied", "rejected", "ambiguous", "interrupted"] | None
    result_hash: bytes | None
    error_hash: bytes | None


class _DecisionRow(NamedTuple):
    effect_id: str
    recorded_at: int
    actor_type: ActorType
    payload_hash: bytes


class _Digest(NamedTuple):
    value: bytes


def effect_items(
    read: Read,
    *,
    run_id: str | None = None,
    status: EffectStatus | None = None,
    effect_id: str | None = None,
    cursor: int | None = None,
) -> EffectItems:
    """Return a page of effects, oldest first; those that an ID names by ID.

    Args:
        read: One consistent read.
        run_id: The run whose effects are asked for; None is every run's.
        status: The state asked for; None is what is not settled, or with an ID any.
        effect_id: An effect's ID, or the beginning of one.
        cursor: How many to leave out at the front.

    Returns:
        At most 64 items and 64 KiB; the next page begins at `cursor` + their number.

    Raises:
        NotFound: There is no such run.
    """
    if run_id is not None:
        run_facts(read, run_id)
    values: dict[str, SqlValue] = {} if run_id is None else {"run_id": run_id}
    if effect_id is not None:
        page, count = SQL["named_effects"], SQL["count_named_effects"]
        values |= {"first": effect_id, "after": effect_id + _AFTER}
        values |= {"status": status, "run_id": run_id}
    else:
        values["statuses"] = json_list((status,) if status else UNSETTLED)
        if run_id is None:
            page, count = SQL["all_effects"], SQL["count_all_effects"]
        else:
            page, count = SQL["run_effects"], SQL["count_run_effects"]
    found = read.all(
        _EffectId,
        page,
        **values,
        start=cursor or 0,
        items_max=EFFECTS_LISTED_MAX,
    )
    total = read.one(_Count, count, **values)
    items = _Items(read).of([row.value for row in found])
    shown = len(forward([item.document() for item in items]))
    return EffectItems(items=tuple(items[:shown]), total=total.value if total else 0)


class _Items:
    """Makes the items of one page."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._definitions: dict[str, Snapshot] = {}

    def of(self, effect_ids: list[str]) -> list[EffectItem]:
        """Return effects as people read them, in the order of the question."""
        asked = json_list(effect_ids)
        tries: dict[str, list[_TryRow]] = defaultdict(list)
        for each in self._read.all(
            _TryRow, SQL["tries"], effect_ids=asked, tries_max=EFFECT_TRIES_LISTED_MAX
        ):
            tries[each.effect_id].append(each)
        decided: dict[str, list[_DecisionRow]] = defaultdict(list)
        for row in self._read.all(
            _DecisionRow, SQL["decisions"], effect_ids=asked, events_max=EFFECT_EVENTS_READ_MAX
        ):
            decided[row.effect_id].append(row)
        rows = self._read.all(_EffectRow, SQL["effects"], effect_ids=asked)
        return [self._item(row, tries[row.effect_id], decided[row.effect_id]) for row in rows]

    def _item(
        self, row: _EffectRow, tries: list[_TryRow], decided: list[_DecisionRow]
    ) -> EffectItem:
        payload = self._read.document(EffectPayload.parse, row.payload_hash)
        last = tries[-1] if tries else None
        output = row.result_hash or (last.result_hash if last is not None else None)
        return EffectItem(
            effect_id=row.effect_id,
            run_id=row.run_id,
            run_status=row.run_status,
            run_paused=row.run_paused == 1,
            node_path=payload.node_path,
            visit=payload.visit,
            effect_type=row.effect_type,
            recovery=payload.recovery,
            status=row.status,
            attempts=row.attempt_count,
            request=self._value(bytes.fromhex(payload.request)),
            last_error=self._failure(row.error_hash),
            next_attempt_at=row.next_attempt_at,
            tries=tuple(self._try(each) for each in tries),
            output=None if output is None else self._value(output, _OUTPUT_BYTES_MAX),
            progress=self._progress(row, payload),
            choices=self._choices(row, payload),
            decisions=tuple(self._decision(each) for each in decided[:EFFECT_DECISIONS_LISTED_MAX]),
            created_at=row.created_at,
            updated_at=row.updated_at,
        )

    def _try(self, row: _TryRow) -> EffectTry:
        return EffectTry(
            number=row.attempt_number,
            started_at=row.started_at,
            finished_at=row.finished_at,
            outcome=row.outcome,
            error=self._failure(row.error_hash),
        )

    def _decision(self, row: _DecisionRow) -> EffectDecision:
        event = self._read.document(EffectRecovered.model_validate_json, row.payload_hash)
        evidence = bytes.fromhex(event.evidence_hash)
        return EffectDecision(
            at=row.recorded_at,
            action=event.action,
            actor=row.actor_type,
            evidence=self._value(evidence, _OUTPUT_BYTES_MAX),
        )

    def _choices(self, row: _EffectRow, payload: EffectPayload) -> tuple[EffectChoice, ...]:
        """Return what a person may say, and what that does; nothing while there is no doubt."""
        if row.status != "ambiguous":
            return ()
        return effect_choices(
            self._definition(row.run_id),
            payload.node_path,
            attempts=row.attempt_count,
            is_over=row.run_status in _OVER,
        )

    def _definition(self, run_id: str) -> Snapshot:
        known = self._definitions.get(run_id)
        if known is None:
            facts = run_facts(self._read, run_id)
            known = self._read.document(Snapshot.parse, facts.definition_hash)
            self._definitions[run_id] = known
        return known

    def _progress(self, row: _EffectRow, payload: EffectPayload) -> Json:
        """Return what the effect's node published last, while the effect is not settled."""
        if row.status not in UNSETTLED:
            return None
        found = self._read.one(
            _Digest,
            SQL["progress"],
            run_id=row.run_id,
            node_path=payload.node_path,
            visit=payload.visit,
        )
        return None if found is None else self._value(found.value, _OUTPUT_BYTES_MAX)

    def _failure(self, digest: bytes | None) -> Failure | None:
        if digest is None:
            return None
        stored = self._read.document(StoredFailure.parse, digest)
        return Failure.of(stored.code, stored.message)

    def _value(self, digest: bytes, bytes_max: int = INLINE_BYTES_MAX) -> Json:
        return embedded(self._read, stored_value(self._read, digest), bytes_max)
