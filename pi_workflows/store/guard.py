"""What no statement may do to the live database, whoever wrote it.

SQLite asks while it prepares a statement, so this costs nothing when statements are reused.
Journals are never rewritten: of stored content alone the media type may rise (the state contract,
section 3).
"""

from __future__ import annotations

from typing import Final

import apsw

_ALLOWED: Final = frozenset(
    {
        apsw.SQLITE_SELECT,
        apsw.SQLITE_READ,
        apsw.SQLITE_INSERT,
        apsw.SQLITE_UPDATE,
        apsw.SQLITE_DELETE,
        apsw.SQLITE_FUNCTION,
        apsw.SQLITE_RECURSIVE,
        apsw.SQLITE_TRANSACTION,
        apsw.SQLITE_SAVEPOINT,
    }
)
_WRITES: Final = frozenset({apsw.SQLITE_INSERT, apsw.SQLITE_UPDATE, apsw.SQLITE_DELETE})
# What happened, what was said, and what was answered.
_JOURNALS: Final = frozenset(
    {
        "events",
        "event_blobs",
        "blobs",
        "session_entries",
        "session_events",
        "host_commands",
        "worker_messages",
    }
)
# Facts that nobody may restate, although they are rebuilt from events.
_IMMUTABLE: Final = _JOURNALS | {
    "human_decisions",
    "human_decision_resolutions",
    "workflow_setting_changes",
}
_UPDATABLE: Final = frozenset({("blobs", "media_type")})


def authorize(
    action: int,
    first: str | None,
    second: str | None,
    _database: str | None,
    _trigger: str | None,
) -> int:
    """Answer SQLite's question whether a statement may be prepared.

    Args:
        action: What the statement would do, `SQLITE_*`.
        first: For a write the table.
        second: For an UPDATE the column.

    Returns:
        `SQLITE_OK` or `SQLITE_DENY`. Everything is denied that is not a query, an INSERT, an
        UPDATE, a DELETE or the bounds of a transaction: a schema, an attachment or a setting never
        changes. A foreign key's SET NULL and CASCADE are asked about as the UPDATE and DELETE that
        they are.
    """
    if action not in _ALLOWED:
        return apsw.SQLITE_DENY
    if action in _WRITES:
        table = first or ""
        if table.startswith("sqlite_"):
            return apsw.SQLITE_DENY
        if action == apsw.SQLITE_DELETE and table in _JOURNALS:
            return apsw.SQLITE_DENY
        if (
            action == apsw.SQLITE_UPDATE
            and table in _IMMUTABLE
            and (table, second) not in _UPDATABLE
        ):
            return apsw.SQLITE_DENY
    return apsw.SQLITE_OK
