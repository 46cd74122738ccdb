"""Make a new `state.sqlite`: built in memory, written aside, published whole."""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING, Final

from pi_workflows.store.driver import connect
from pi_workflows.store.publish import (
    disk_error,
    open_directory,
    publish,
    temporary_file,
    write_all,
)
from pi_workflows.store.shape import create_schema

if TYPE_CHECKING:
    from pathlib import Path

_PREFIX: Final = ".state.sqlite.new-"
_LEFTOVER: Final = re.compile(re.escape(_PREFIX) + "[0-9a-f]{16}")


def create_file(path: Path, *, now_ms: int, app_version: str) -> None:
    """Create a database with the schema, its identity and nothing else, mode 0600.

    A crash at any moment leaves no file of that name or the whole one; what else it leaves is
    removed by `remove_leftovers`.

    Args:
        path: In the state directory; nothing has that name.
        now_ms: Wall time of the creation, milliseconds.
        app_version: The program's version, for people.

    Raises:
        FileExistsError: Something got that name meanwhile; it is left alone.
        Unavailable: The disk is full or failed.
    """
    connection = connect(":memory:")
    try:
        create_schema(connection, now_ms=now_ms, app_version=app_version)
        image = connection.serialize("main")
    finally:
        connection.close()
    try:
        with (
            open_directory(path.parent) as directory,
            temporary_file(directory, _PREFIX) as (name, descriptor),
        ):
            write_all(descriptor, image)
            publish(directory, name, descriptor, path.name)
    except FileExistsError:
        raise
    except OSError as error:
        raise disk_error(error) from error


def remove_leftovers(directory: Path) -> None:
    """Remove what a creation left that was killed.

    The file may have its own name already and this one too, which would make it a hard link.

    Args:
        directory: The state directory; its owner holds the server's lock.
    """
    for path in directory.iterdir():
        if _LEFTOVER.fullmatch(path.name) and stat.S_ISREG(path.lstat().st_mode):
            path.unlink(missing_ok=True)
