"""What a contradiction means in a file that nobody has verified: damage, not a bug of ours."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from pi_workflows.base.errors import Corrupt, NotFound, PayloadInvalid
from pi_workflows.base.sql import Read, load

SQL: Final = load(__package__, "damage.sql")


@contextmanager
def damage_of_file() -> Generator[None]:
    """Read a file that may hold anything while the body runs.

    The live database is verified when it is opened, so that a row that is not as it must be is our
    bug there. A file may come from anybody, and looking into it must not need a verification first.

    Raises:
        Corrupt: What is stored contradicts itself (`contradiction`).
    """
    try:
        yield
    except (AssertionError, LookupError, PayloadInvalid, TypeError, ValueError) as error:
        raise contradiction() from error


@contextmanager
def damage_of_run(read: Read, run_id: str) -> Generator[None]:
    """Read about a run of a file, as `damage_of_file`, while the body runs.

    A run that stands in the table of runs exists. When it cannot be found all the same, rows that
    belong to it are missing.

    Raises:
        Corrupt: What is stored contradicts itself (`contradiction`).
    """
    with damage_of_file():
        try:
            yield
        except NotFound as error:
            stands = read.one(str, SQL["run_stands"], run_id=run_id) is not None
            if error.reason_code != "runMissing" or not stands:
                raise
            raise contradiction() from error


def contradiction() -> Corrupt:
    """Return the error of a file that contradicts itself."""
    return Corrupt("What is stored contradicts itself.", code="contradiction")
