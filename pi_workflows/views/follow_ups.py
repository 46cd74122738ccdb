"""The prompts that wait for a run's end, as people see them."""

from __future__ import annotations

from typing import Final, NamedTuple

from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import CARRIED_BYTES_MAX, INLINE_BYTES_MAX, PAGE_BYTES_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.fact import ActorType
from pi_workflows.domain.rows import FollowUpStatus
from pi_workflows.domain.session_rows import MessageStatus
from pi_workflows.views.page import Page, around, window
from pi_workflows.views.value import Value, embedded

SQL: Final = load(__package__, "follow_ups.sql")


class _Row(NamedTuple):
    """One follow-up with its prompt."""

    follow_up_id: str
    order_number: int
    actor_type: ActorType
    status: FollowUpStatus
    created_at: int
    updated_at: int
    message_status: MessageStatus | None
    prompt_hash: bytes
    prompt_media: str
    prompt_bytes: int
    prompt_content: bytes | None
    reason_hash: bytes | None
    reason_media: str | None
    reason_bytes: int | None
    reason_content: bytes | None

    @property
    def prompt(self) -> Value | None:
        """What it says."""
        return Value.of(self.prompt_hash, self.prompt_media, self.prompt_bytes, self.prompt_content)

    @property
    def reason(self) -> Value | None:
        """Why it does not wait any more."""
        return Value.of(self.reason_hash, self.reason_media, self.reason_bytes, self.reason_content)

    @property
    def state(self) -> str:
        """Where it stands, its message included: what a branch holds was sent."""
        return "sent" if self.message_status == "sent" else self.status


class _Total(NamedTuple):
    value: int


def follow_ups_page(
    read: Read, run_id: str, bytes_max: int = PAGE_BYTES_MAX, *, cursor: int | None = None
) -> Page:
    """Return a window of a run's follow-ups, in the order in which they were accepted.

    Args:
        read: The view's read.
        run_id: The run.
        bytes_max: Bytes of the items.
        cursor: The index of one; None is the last.

    Returns:
        The page.
    """
    found = read.one(_Total, SQL["total"], run_id=run_id)
    total = found.value if found is not None else 0
    places = window(total, cursor)
    rows = read.all(
        _Row,
        SQL["follow_ups"],
        run_id=run_id,
        after=places.start,
        through=places.stop,
        carried_bytes=CARRIED_BYTES_MAX,
    )
    value_max = min(INLINE_BYTES_MAX, bytes_max)
    items: list[Json] = [_item(read, row, value_max) for row in rows]
    return around(total, cursor, items, bytes_max)


def _item(read: Read, row: _Row, bytes_max: int) -> dict[str, Json]:
    """Return one follow-up."""
    item: dict[str, Json] = {
        "followUpId": row.follow_up_id,
        "order": row.order_number,
        "state": row.state,
        "actor": row.actor_type,
        "prompt": embedded(read, row.prompt, bytes_max),
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
    }
    if row.reason is not None:
        item["reason"] = embedded(read, row.reason, bytes_max)
    return item
