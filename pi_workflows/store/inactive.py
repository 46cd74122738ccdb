"""A database that is not live and lies there to be judged."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw

from pi_workflows.base.errors import Corrupt, Unavailable
from pi_workflows.store.connection import check_library, open_descriptor
from pi_workflows.store.content import Documents
from pi_workflows.store.cursors import Cursors
from pi_workflows.store.errors import translate
from pi_workflows.store.header import HEADER_BYTES, parse_header
from pi_workflows.store.inactive_file import open_file
from pi_workflows.store.shape import check_shape, refusal
from pi_workflows.store.snapshot import Snapshot, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from pi_workflows.store.driver import Connection

_FORCE = True


@contextmanager
def open_inactive(file: Path, *, live_directory: Path | None) -> Generator[Snapshot]:
    """Read a database that no server has open: a backup, or what an orderly stop left.

    Nothing is written, not even beside it. The file that was judged is the one that is read: no
    link, mount or relative path leads to the live one, and none that is swapped meanwhile (the
    state contract, section 7).

    Args:
        file: The database, by any path.
        live_directory: The state directory, whose `state.sqlite` is refused; None when there is
            none.

    Returns:
        One moment of it, for as long as the body runs.

    Raises:
        NotFound: There is no such file (`fileMissing`).
        AuthorityDenied: It is live, no regular file or not self-contained, as `open_file`.
        Incompatible: It is not our database.
        Corrupt: It is damaged.
        Unavailable: The disk failed.
    """
    check_library()
    with open_file(file, live_directory=live_directory) as descriptor:
        try:
            connection = _open_judged(descriptor)
        except apsw.NotADBError as error:
            raise refusal(f"SQLite refused to read it: {error}") from error
        except apsw.Error as error:
            raise translate(error) from error
        except OSError as error:
            raise Unavailable(
                f"The file could not be read: {error.strerror}.",
                code="storageFault",
                field=str(file),
            ) from error
        try:
            with snapshot_of(Cursors(connection), Documents()) as snapshot:
                yield snapshot
        finally:
            connection.close(_FORCE)


def _open_judged(descriptor: int) -> Connection:
    """Open a file that nothing lies beside, and refuse one that is not ours.

    Raises:
        Incompatible: It is not our database.
        Corrupt: It is longer or shorter than its pages.
        apsw.Error: SQLite could not read it.
        OSError: The disk failed.
    """
    if parse_header(os.pread(descriptor, HEADER_BYTES, 0)) is None:
        raise refusal("it is no SQLite database")
    connection = open_descriptor(descriptor)
    try:
        check_shape(connection)
        _check_length(connection, os.fstat(descriptor).st_size)
    except BaseException:
        connection.close(_FORCE)
        raise
    return connection


def _check_length(connection: Connection, file_bytes: int) -> None:
    """Refuse a file of which a part was cut off or to which something was added.

    SQLite reads neither: it ends at the pages that the header counts.
    """
    pages, page_bytes = connection.pragma("page_count"), connection.pragma("page_size")
    assert isinstance(pages, int)
    assert isinstance(page_bytes, int)
    if pages * page_bytes != file_bytes:
        raise Corrupt(f"The file has {file_bytes} bytes, and its pages {pages * page_bytes}.")
