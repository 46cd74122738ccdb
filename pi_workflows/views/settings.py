"""The settings of a run as people see them: their values, who may change what, and who did."""

from __future__ import annotations

from typing import Final, NamedTuple

from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import (
    CARRIED_BYTES_MAX,
    INLINE_BYTES_MAX,
    PAGE_BYTES_MAX,
    SETTINGS_CHANGES_SHOWN_MAX,
    SETTINGS_PATCH_SHOWN_BYTES_MAX,
)
from pi_workflows.base.sql import Read, load
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.fact import ActorType
from pi_workflows.views.facts import RunFacts
from pi_workflows.views.page import Page, around, window
from pi_workflows.views.value import Value, embedded

SQL: Final = load(__package__, "settings.sql")


class _ScopeRow(NamedTuple):
    """The settings of one invocation of a workflow."""

    scope_id: str
    mount_path: str
    invocation: int
    change_number: int
    created_at: int
    updated_at: int
    current_hash: bytes
    current_media: str
    current_bytes: int
    current_content: bytes | None
    initial_hash: bytes
    initial_media: str
    initial_bytes: int
    initial_content: bytes | None

    @property
    def current(self) -> Value | None:
        """What attempts that begin now are bound to."""
        return Value.of(
            self.current_hash, self.current_media, self.current_bytes, self.current_content
        )

    @property
    def initial(self) -> Value | None:
        """What they began with."""
        return Value.of(
            self.initial_hash, self.initial_media, self.initial_bytes, self.initial_content
        )


class _ChangeRow(NamedTuple):
    """One accepted patch."""

    change_number: int
    actor_type: ActorType
    source_type: str
    accepted_at: int
    patch_hash: bytes
    patch_media: str
    patch_bytes: int
    patch_content: bytes | None

    @property
    def patch(self) -> Value | None:
        """What it did."""
        return Value.of(self.patch_hash, self.patch_media, self.patch_bytes, self.patch_content)


class _Total(NamedTuple):
    value: int


def settings_page(
    read: Read, facts: RunFacts, bytes_max: int = PAGE_BYTES_MAX, *, cursor: int | None = None
) -> Page:
    """Return a window of a run's settings, by workflow and invocation.

    Args:
        read: The view's read.
        facts: The run.
        bytes_max: Bytes of the items.
        cursor: The index of one; None is the last.

    Returns:
        The page. An item has the settings' value, the rules about them and their newest changes.
    """
    snapshot = read.document(Snapshot.parse, facts.definition_hash)
    if not snapshot.settings:
        return Page(0, 0, ())
    found = read.one(_Total, SQL["total"], run_id=facts.run_id)
    total = found.value if found is not None else 0
    places = window(total, cursor)
    rows = read.all(
        _ScopeRow,
        SQL["scopes"],
        run_id=facts.run_id,
        start=places.start,
        count=len(places),
        carried_bytes=CARRIED_BYTES_MAX,
    )
    value_max = min(INLINE_BYTES_MAX, bytes_max)
    items: list[Json] = [_item(read, snapshot, row, value_max) for row in rows]
    return around(total, cursor, items, bytes_max)


def _item(read: Read, snapshot: Snapshot, row: _ScopeRow, bytes_max: int) -> dict[str, Json]:
    """Return the settings of one invocation."""
    policy = next(each for each in snapshot.settings or () if each.mount == row.mount_path)
    paths: list[Json] = [path.model_dump(mode="json", by_alias=True) for path in policy.paths]
    item: dict[str, Json] = {
        "scopeId": row.scope_id,
        "mountPath": row.mount_path,
        "invocation": row.invocation,
        "changeNumber": row.change_number,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
        "value": embedded(read, row.current, bytes_max),
        "initial": embedded(read, row.initial, min(bytes_max, SETTINGS_PATCH_SHOWN_BYTES_MAX)),
        "paths": paths,
        "changes": _changes(read, row, min(bytes_max, SETTINGS_PATCH_SHOWN_BYTES_MAX)),
    }
    return item


def _changes(read: Read, row: _ScopeRow, bytes_max: int) -> Json:
    """Return the newest changes, in order; what they did is a reference when it is long."""
    changes = read.all(
        _ChangeRow,
        SQL["changes"],
        scope_id=row.scope_id,
        after=max(0, row.change_number - SETTINGS_CHANGES_SHOWN_MAX),
        carried_bytes=CARRIED_BYTES_MAX,
    )
    return [
        {
            "changeNumber": change.change_number,
            "at": change.accepted_at,
            "actor": change.actor_type,
            "source": change.source_type,
            "patch": embedded(read, change.patch, bytes_max),
        }
        for change in changes
    ]
