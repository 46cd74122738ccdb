"""The first 100 bytes of a database, read before SQLite may look at the file.

Those of the live file are read through SQLite's own file layer: closing a descriptor of the file
that anybody else opened would drop the locks of every connection in this process (the reliability
design, pitfall 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import apsw

if TYPE_CHECKING:
    from pathlib import Path

_MAGIC: Final = b"SQLite format 3\x00"
HEADER_BYTES: Final = 100
_WAL_FORMAT: Final = 2


class Header(NamedTuple):
    """What the header says; offsets are those of SQLite's file format, section 1.3.

    Attributes:
        has_wal: Whether the last writer left the file in write-ahead mode.
        application_id: Which program's file it is.
        user_version: Which of its schemas.
    """

    has_wal: bool
    application_id: int
    user_version: int


def read_header(path: Path) -> Header | None:
    """Read a database's header.

    Args:
        path: An existing regular file, no symbolic link.

    Returns:
        The header, or None when the file is too short or is no SQLite database.

    Raises:
        apsw.Error: The file cannot be opened or read.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB
    file = apsw.VFSFile("unix-excl", str(path), [flags, 0])
    try:
        if file.xFileSize() < HEADER_BYTES:
            return None
        data = file.xRead(HEADER_BYTES, 0)
    finally:
        file.xClose()
    return parse_header(data)


def parse_header(data: bytes) -> Header | None:
    """Return what the first bytes of a file say.

    Args:
        data: At least the first 100 bytes of the file, or all of a shorter one.

    Returns:
        The header, or None when the file is too short or is no SQLite database.
    """
    if len(data) < HEADER_BYTES or not data.startswith(_MAGIC):
        return None
    return Header(
        has_wal=_WAL_FORMAT in {data[18], data[19]},
        application_id=int.from_bytes(data[68:72]),
        user_version=int.from_bytes(data[60:64]),
    )


def sync_file(path: Path) -> None:
    """Make what was written to a file, its length included, survive a power loss.

    Raises:
        apsw.Error: The file cannot be opened, or the disk failed.
    """
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_WAL
    file = apsw.VFSFile("unix-excl", str(path), [flags, 0])
    try:
        file.xSync(apsw.SQLITE_SYNC_NORMAL)
    finally:
        file.xClose()
