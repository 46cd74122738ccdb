"""Captured sessions: the journals, and the digest that chains what a segment holds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pi_workflows.base import canonical
from pi_workflows.base.sql import SqlValue, load

if TYPE_CHECKING:
    from pi_workflows.store.transaction import Transaction

_SQL: Final = load(__package__, "capture.sql")

EMPTY_DIGEST: Final = bytes(32)
"""`entry_digest` and `event_digest` of a segment that holds nothing (state contract, 1.6)."""


def entry_digest(previous: bytes, columns: Mapping[str, SqlValue]) -> bytes:
    """Return the running digest of a segment after one more row of a journal.

    Args:
        previous: The digest before the row; `EMPTY_DIGEST` before a segment's first.
        columns: The row of `session_entries` or `session_events`, every column by its name.

    Returns:
        SHA-256 over the canonical JSON of the columns and of the previous digest, bytes as hex;
        32 bytes.
    """
    members: dict[str, canonical.Json] = {
        name: value.hex() if isinstance(value, bytes) else value for name, value in columns.items()
    }
    return hashlib.sha256(canonical.encode({**members, "previous_digest": previous.hex()})).digest()


def append_entry(transaction: Transaction, columns: Mapping[str, SqlValue]) -> None:
    """Append a row of `session_entries`, live and in a rebuild; its content is stored already.

    Args:
        transaction: The open transaction.
        columns: Every column by its name.
    """
    transaction.execute(_SQL["append_entry"], **columns)


def append_event(transaction: Transaction, columns: Mapping[str, SqlValue]) -> None:
    """Append a row of `session_events`, as `append_entry`."""
    transaction.execute(_SQL["append_event"], **columns)
