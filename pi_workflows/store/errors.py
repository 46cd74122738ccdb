"""What a failure of SQLite means to the rest of the product: one table for this whole package."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import apsw

from pi_workflows.base.errors import Corrupt, Unavailable


def _disk_full() -> Exception:
    return Unavailable(
        "The disk is full; nothing was changed.", code="diskFull", hint="Free some space."
    )


def _writer_busy() -> Exception:
    return Unavailable("Another process holds the database.", code="writerBusy")


def _storage_fault() -> Exception:
    return Unavailable(
        "The disk could not be read or written; nothing was changed.", code="storageFault"
    )


# Every other failure is a statement that should not have been run: our bug, never an answer.
_MEANINGS: Final[tuple[tuple[tuple[type[apsw.Error], ...], Callable[[], Exception]], ...]] = (
    ((apsw.FullError,), _disk_full),
    ((apsw.BusyError, apsw.LockedError), _writer_busy),
    ((apsw.IOError, apsw.NoMemError, apsw.CantOpenError), _storage_fault),
    ((apsw.CorruptError, apsw.NotADBError), Corrupt),
)


def translate(error: apsw.Error) -> Exception:
    """Return what an error of SQLite means, as a branch of the tree in `base.errors`.

    Args:
        error: What apsw raised.

    Returns:
        Unavailable (`diskFull`, `writerBusy`, `storageFault`), Corrupt, or AssertionError: a
        constraint that a decider let through, a denied statement, or anything else that only our
        own code can cause.
    """
    for classes, meaning in _MEANINGS:
        if isinstance(error, classes):
            return meaning()
    return AssertionError(f"{type(error).__name__}: {error}")
