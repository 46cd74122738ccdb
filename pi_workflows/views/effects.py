"""Effects of actions, for those who look at them and decide about them."""

from __future__ import annotations

from typing import Final, NamedTuple

from pi_workflows.base.limits import PAGE_ITEMS_MAX
from pi_workflows.base.sql import Read, SqlValue, load
from pi_workflows.domain.effect.state import EffectPayload
from pi_workflows.domain.failure import Failure as StoredFailure
from pi_workflows.domain.rows import EffectStatus
from pi_workflows.protocol.effects import EffectItem, EffectItems
from pi_workflows.protocol.proposals import Failure
from pi_workflows.views.content import stored_value
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


class _EffectRow(NamedTuple):
    effect_id: str
    run_id: str
    effect_type: str
    status: EffectStatus
    attempt_count: int
    payload_hash: bytes
    error_hash: bytes | None
    created_at: int
    updated_at: int


def effect_items(
    read: Read,
    *,
    run_id: str | None = None,
    status: EffectStatus | None = None,
    cursor: int | None = None,
) -> EffectItems:
    """Return a page of effects, oldest first.

    Args:
        read: One consistent read.
        run_id: The run whose effects are asked for; None is every run's.
        status: The state asked for; None is what is not settled.
        cursor: How many to leave out at the front.

    Returns:
        At most 256 items and 64 KiB; the next page begins at `cursor` + their number.

    Raises:
        NotFound: There is no such run.
    """
    values: dict[str, SqlValue] = {"statuses": json_list((status,) if status else UNSETTLED)}
    place: dict[str, SqlValue] = {"start": cursor or 0, "items_max": PAGE_ITEMS_MAX}
    if run_id is None:
        found = read.all(_EffectId, SQL["all_effects"], **values, **place)
        total = read.one(_Count, SQL["count_all_effects"], **values)
    else:
        run_facts(read, run_id)
        values["run_id"] = run_id
        found = read.all(_EffectId, SQL["run_effects"], **values, **place)
        total = read.one(_Count, SQL["count_run_effects"], **values)
    rows = _rows(read, [row.value for row in found])
    items = [_item(read, row) for row in rows]
    shown = len(forward([item.document() for item in items]))
    return EffectItems(items=tuple(items[:shown]), total=total.value if total else 0)


def _rows(read: Read, effect_ids: list[str]) -> list[_EffectRow]:
    """Return the rows of effects, in the order of the question."""
    return read.all(_EffectRow, SQL["effects"], effect_ids=json_list(effect_ids))


def _item(read: Read, row: _EffectRow) -> EffectItem:
    """Return an effect as people read it."""
    payload = read.document(EffectPayload.parse, row.payload_hash)
    error = None
    if row.error_hash is not None:
        stored = read.document(StoredFailure.parse, row.error_hash)
        error = Failure.of(stored.code, stored.message)
    return EffectItem(
        effect_id=row.effect_id,
        run_id=row.run_id,
        node_path=payload.node_path,
        visit=payload.visit,
        effect_type=row.effect_type,
        recovery=payload.recovery,
        status=row.status,
        attempts=row.attempt_count,
        request=embedded(read, stored_value(read, bytes.fromhex(payload.request))),
        last_error=error,
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
