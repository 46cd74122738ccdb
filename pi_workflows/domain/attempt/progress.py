"""Progress that a node publishes while it works.

It never completes a node and never chooses a route.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import LimitExceeded
from pi_workflows.base.limits import UPDATE_KEYS_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.attempt.boundary import required_attempt
from pi_workflows.domain.attempt.events import UpdateRecorded
from pi_workflows.domain.fact import Command, Context, Decided
from pi_workflows.domain.rows import UpdateRow
from pi_workflows.domain.run.state import working_run

SQL: Final = load(__package__, "reads.sql")


@dataclass(frozen=True, slots=True)
class RecordUpdate(Command):
    """Replace what the open attempt says under one type and key.

    Attributes:
        attempt_id: The open attempt.
        update_type: Such as `progress`.
        update_key: Which of the attempt's accounts of that type.
        data: The complete new account.
    """

    attempt_id: str
    update_type: str
    update_key: str
    data: Blob


def record_update(command: RecordUpdate, context: Context, read: Read) -> Decided:
    """Decide to record progress.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It has ended, or the attempt is not the open one.
        LimitExceeded: `updateKeys`, the attempt has too many accounts.
    """
    state = working_run(read, command.run_id)
    attempt = required_attempt(read, command.run_id, command.attempt_id)
    known = read.one(
        int,
        SQL["update_known"],
        attempt_id=attempt.attempt_id,
        update_type=command.update_type,
        update_key=command.update_key,
    )
    if known is None:
        _require_room(read, attempt.attempt_id)
    last = read.one(int, SQL["last_update"], attempt_id=attempt.attempt_id)
    seq = (last or 0) + 1
    row = UpdateRow(
        update_id=f"{attempt.attempt_id}-update-{seq}",
        attempt_id=attempt.attempt_id,
        update_seq=seq,
        run_revision=state.revision + 1,
        update_type=command.update_type,
        update_key=command.update_key,
        data_hash=command.data.hex,
        recorded_at=context.at_ms,
    )
    event = UpdateRecorded(run_id=state.run_id, node_id=attempt.node_id, update=row)
    return Decided(drafts=(state.draft(event),), blobs=(command.data,))


def _require_room(read: Read, attempt_id: str) -> None:
    """Refuse one more account than the limit allows."""
    keys = read.one(int, SQL["update_keys"], attempt_id=attempt_id)
    if keys is not None and keys >= UPDATE_KEYS_MAX:
        raise LimitExceeded(
            f"An attempt publishes at most {UPDATE_KEYS_MAX} kinds of progress.", code="updateKeys"
        )
