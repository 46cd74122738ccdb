"""Progress that a node publishes while it works.

It never completes a node and never chooses a route.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import LimitExceeded
from pi_workflows.base.limits import UPDATE_KEYS_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.attempt.boundary import required_attempt
from pi_workflows.domain.attempt.events import UpdateRecorded
from pi_workflows.domain.fact import Command, Context, Decided
from pi_workflows.domain.rows import UpdateRow
from pi_workflows.domain.run.state import OpenAttempt, RunState, working_run

SQL: Final = load(__package__, "reads.sql")


@dataclass(frozen=True, slots=True)
class RecordUpdate(Command):
    """Replace what the open attempt says under one type and key.

    Attributes:
        attempt_id: The open attempt.
        update_type: Such as `progress`.
        update_key: Which of the run's accounts of that type.
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
        LimitExceeded: `updateKeys`, the run has too many accounts.
    """
    state = working_run(read, command.run_id)
    attempt = required_attempt(read, command.run_id, command.attempt_id)
    account = Account(command.update_type, command.update_key, command.data)
    return recorded(read, state, attempt, account, context.at_ms)


class Account(NamedTuple):
    """What is said under one type and key.

    Attributes:
        type: Such as `progress`.
        key: Which of the run's accounts of that type.
        data: The complete new account.
    """

    type: str
    key: str
    data: Blob


def recorded(
    read: Read, state: RunState, attempt: OpenAttempt, account: Account, at_ms: int
) -> Decided:
    """Return the progress of an open attempt.

    Args:
        read: Reads of the deciding transaction.
        state: The run.
        attempt: The attempt.
        account: What is said.
        at_ms: When it is decided.

    Returns:
        The event, and as the receipt the record of it.

    Raises:
        LimitExceeded: `updateKeys`, the run has too many accounts.
    """
    known = read.one(
        int,
        SQL["update_known"],
        run_id=state.run_id,
        update_type=account.type,
        update_key=account.key,
    )
    if known is None:
        _require_room(read, state.run_id)
    last = read.one(int, SQL["last_update"], attempt_id=attempt.attempt_id)
    seq = (last or 0) + 1
    row = UpdateRow(
        update_id=f"{attempt.attempt_id}-update-{seq}",
        run_id=state.run_id,
        attempt_id=attempt.attempt_id,
        update_seq=seq,
        run_revision=state.revision + 1,
        update_type=account.type,
        update_key=account.key,
        data_hash=account.data.hex,
        recorded_at=at_ms,
    )
    event = UpdateRecorded(run_id=state.run_id, node_id=attempt.node_id, update=row)
    receipt: dict[str, Json] = {
        "updateId": row.update_id,
        "seq": row.run_revision,
        "at": at_ms,
        "runId": state.run_id,
        "nodeId": attempt.node_id,
        "attemptId": attempt.attempt_id,
        "type": account.type,
        "key": account.key,
    }
    return Decided(drafts=(state.draft(event),), blobs=(account.data,), receipt=receipt)


def _require_room(read: Read, run_id: str) -> None:
    """Refuse one more account than the limit allows."""
    keys = read.one(int, SQL["update_keys"], run_id=run_id, keys_max=UPDATE_KEYS_MAX)
    if keys is not None and keys >= UPDATE_KEYS_MAX:
        raise LimitExceeded(
            f"A run keeps at most {UPDATE_KEYS_MAX} accounts of progress.", code="updateKeys"
        )
