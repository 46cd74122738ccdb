"""What a run told its session, as people see it: each message, and the newest turn for it."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import (
    CARRIED_BYTES_MAX,
    INLINE_BYTES_MAX,
    PAGE_BYTES_MAX,
    PAGE_ITEMS_MAX,
)
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.session_rows import MessageKind, MessageStatus, RecoveryStop, TurnEnd
from pi_workflows.views.heads import json_list
from pi_workflows.views.page import Page, around, window
from pi_workflows.views.value import Value, embedded

SQL: Final = load(__package__, "messages.sql")
# The least that an item takes beside its text: the names of its members, two identities, two times.
_ITEM_BYTES: Final = 300
# The least that the reference to a long text takes.
_REFERENCE_BYTES: Final = 200


class MessageItem(NamedTuple):
    """One message with its text and its newest turn."""

    workflow_message_id: str
    run_id: str
    target_session_id: str
    kind: MessageKind
    source_id: str
    order_number: int
    status: MessageStatus
    pi_session_entry_id: str | None
    recovery_stop: RecoveryStop | None
    created_at: int
    updated_at: int
    content_hash: bytes
    content_media: str
    content_bytes: int
    content_content: bytes | None
    turn_id: str | None
    turn_state: Literal["started", "ended"] | None
    stop_reason: TurnEnd | None
    response_entry_id: str | None
    started_at: int | None
    ended_at: int | None

    @property
    def content(self) -> Value | None:
        """What it says."""
        return Value.of(
            self.content_hash, self.content_media, self.content_bytes, self.content_content
        )


class _Total(NamedTuple):
    value: int


def messages_page(
    read: Read, run_id: str, bytes_max: int = PAGE_BYTES_MAX, *, cursor: int | None = None
) -> Page:
    """Return a window of what a run told its session, in that order.

    Args:
        read: The view's read.
        run_id: The run.
        bytes_max: Bytes of the items.
        cursor: The index of a message; None is the last.

    Returns:
        The page.
    """
    found = read.one(_Total, SQL["total"], run_id=run_id)
    total = found.value if found is not None else 0
    if cursor is None:
        return _newest(read, run_id, total, bytes_max)
    places = window(total, cursor)
    listed = read.all(
        str, SQL["range"], run_id=run_id, start=places.start, count=places.stop - places.start
    )
    return around(total, cursor, _items(read, listed, bytes_max), bytes_max)


def _newest(read: Read, run_id: str, total: int, bytes_max: int) -> Page:
    """Return the last messages; of those that cannot fit no text is read.

    A patch shows them at every message.
    """
    listed = read.all(
        str,
        SQL["newest"],
        run_id=run_id,
        reference_bytes=_REFERENCE_BYTES,
        item_bytes=_ITEM_BYTES,
        bytes_max=bytes_max,
        items_max=PAGE_ITEMS_MAX,
    )
    page = around(len(listed), None, _items(read, listed, bytes_max), bytes_max)
    return Page(total - len(listed) + page.start, total, page.items)


def _items(read: Read, message_ids: list[str], bytes_max: int) -> list[Json]:
    """Return messages as items, in the order of the question."""
    rows = read.all(
        MessageItem,
        SQL["messages"],
        message_ids=json_list(message_ids),
        carried_bytes=CARRIED_BYTES_MAX,
    )
    return [_item(read, row, min(INLINE_BYTES_MAX, bytes_max)) for row in rows]


def _item(read: Read, row: MessageItem, bytes_max: int) -> dict[str, Json]:
    """Return one message."""
    item: dict[str, Json] = {
        "workflowMessageId": row.workflow_message_id,
        "runId": row.run_id,
        "targetSessionId": row.target_session_id,
        "kind": row.kind,
        "sourceId": row.source_id,
        "order": row.order_number,
        "status": row.status,
        "piSessionEntryId": row.pi_session_entry_id,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
        "content": embedded(read, row.content, bytes_max),
        "contentDigest": f"sha256:{row.content_hash.hex()}",
    }
    if row.recovery_stop is not None:
        item["recoveryStop"] = row.recovery_stop
    if row.turn_id is not None:
        item["turn"] = {
            "workflowTurnId": row.turn_id,
            "state": row.turn_state,
            "stopReason": row.stop_reason,
            "responseSessionEntryId": row.response_entry_id,
            "startedAt": row.started_at,
            "endedAt": row.ended_at,
        }
    return item
