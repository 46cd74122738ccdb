"""What hands do to a sound database: for each code of a verification, the edits that violate it.

Each file of `violations/` begins with comments that say what was done and, after `also:`, which
other codes that violates too; statements follow, which find by data what they change. A file is
called as the code, or as the code and, after a hyphen, one more way to violate it. A line `-- with:
NAME` stands for the statements of `rows/NAME.sql`, and every file may use what `vocabulary.sql`
gives it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import closing
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

from pi_workflows.store.driver import connect

_SPECIMENS: Final = files("migrations_forbidden.specimens")
_WITH: Final = re.compile(r"^-- with: (?P<name>\w+)$", re.MULTILINE)
_ALSO: Final = "-- also:"
# A specimen keeps the runs that it is about in a table of its own connection.
_HAS_VICTIM: Final = "SELECT 1 FROM temp.sqlite_schema WHERE name = 'victim'"
_VICTIMS: Final = "SELECT DISTINCT run_id FROM temp.victim"


class NothingToChangeError(Exception):
    """The database has no row that could be changed so."""


class Specimen(NamedTuple):
    """One way to violate a code.

    Attributes:
        code: The code.
        text: The statements.
        also: Other codes that they violate, as far as rows alone tell.
    """

    code: str
    text: str
    also: frozenset[str]


@cache
def specimens() -> Mapping[str, Specimen]:
    """Return every specimen by the name of its file."""
    found: dict[str, Specimen] = {}
    vocabulary = _text("vocabulary")
    violations = _SPECIMENS.joinpath("violations").iterdir()
    for name in sorted(file.name.removesuffix(".sql") for file in violations):
        text = _text(f"violations/{name}")
        told = [line for line in text.split("\n") if line.startswith(_ALSO)]
        also = frozenset(code.strip() for line in told for code in line[len(_ALSO) :].split(","))
        statements = _WITH.sub(lambda line: _text(f"rows/{line['name']}"), text)
        found[name] = Specimen(name.partition("-")[0], vocabulary + statements, also)
    return found


def _text(path: str) -> str:
    """Return a file of statements."""
    return _SPECIMENS.joinpath(f"{path}.sql").read_text(encoding="utf-8")


def violate(file: Path, name: str) -> tuple[str, ...]:
    """Let a hand change a database.

    Args:
        file: A sound database that no server has open; it is changed in place.
        name: Of the specimen.

    Returns:
        The runs that the change is about; none where no run has the rows.

    Raises:
        NothingToChangeError: Nothing was changed: the database has no row that could be.
    """
    with closing(connect(str(file))) as connection:
        connection.pragma("foreign_keys", 0)
        connection.pragma("ignore_check_constraints", 1)
        before = connection.serialize("main")
        try:
            connection.execute(specimens()[name].text).fetchall()
        except Exception as error:
            # The schema refuses what is made of a row that is not there; the cause says so.
            raise NothingToChangeError(name) from error
        victims: tuple[str, ...] = ()
        if has_victim := bool(connection.execute(_HAS_VICTIM).fetchall()):
            victims = tuple(str(run_id) for (run_id,) in connection.execute(_VICTIMS).fetchall())
        if connection.serialize("main") == before or (has_victim and not victims):
            raise NothingToChangeError(name)
        return victims
