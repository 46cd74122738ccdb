"""A new database beside others: filled under another name, and complete when it gets its own."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import apsw

from pi_workflows.store.connection import check_library, open_new
from pi_workflows.store.errors import translate
from pi_workflows.store.publish import (
    check_new,
    open_directory,
    publish,
    target_error,
    temporary_file,
)
from pi_workflows.store.scratch import Scratch
from pi_workflows.store.shape import create_schema

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

_PREFIX: Final = ".state-new-"
_FORCE = True


@contextmanager
def new_database(destination: Path, *, now_ms: int, app_version: str) -> Generator[Scratch]:
    """Make a database with our schema that gets its name when the body ends well.

    Args:
        destination: Absolute; nothing has that name.
        now_ms: Wall time of its creation.
        app_version: The program's version, for people.

    Returns:
        The empty database. Whatever is not in it when the body ends in an error is nowhere: no file
        is left.

    Raises:
        PayloadInvalid: The destination cannot be one, as `publish.check_new` says.
        Unavailable: The disk is full or failed.
    """
    check_library()
    check_new(destination)
    try:
        with (
            open_directory(destination.parent) as directory,
            temporary_file(directory, _PREFIX) as (name, descriptor),
        ):
            connection = open_new(descriptor)
            try:
                create_schema(connection, now_ms=now_ms, app_version=app_version)
                yield Scratch(connection)
            finally:
                connection.close(_FORCE)
            publish(directory, name, descriptor, destination.name)
    except OSError as error:
        raise target_error(destination, error) from error
    except apsw.Error as error:
        raise translate(error) from error
