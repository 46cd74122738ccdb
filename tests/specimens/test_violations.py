"""For every code of a verification there is an edit that it finds, and it says whose the row is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from migrations_forbidden.specimens.violation import specimens, violate
from pi_workflows.base.errors import Incompatible
from pi_workflows.kernel.findings import Findings
from pi_workflows.kernel.rules import RULES, apply_rule
from pi_workflows.kernel.verify import CODES
from pi_workflows.store.driver import connect
from pi_workflows.store.inactive import open_inactive
from tests.specimens.checked import check

# No database is opened without them.
OPENED = {"identity", "shape"}
SPECIMENS = specimens()


@pytest.fixture
def file(sound: Path, tmp_path: Path) -> Path:
    """Return a copy that a hand may change."""
    return Path(shutil.copy(sound, tmp_path / "state.sqlite"))


def test_every_code_has_a_specimen() -> None:
    """There is a way to violate every code, and none for anything else."""
    assert {specimen.code for specimen in SPECIMENS.values()} == set(CODES)
    assert set(CODES) <= set(SPECIMENS)


@pytest.mark.parametrize("name", [name for name in SPECIMENS if name not in OPENED])
def test_a_violation_is_found(file: Path, name: str) -> None:
    """The code is reported with the runs that it concerns, nothing else is, and nothing changes.

    Of the rules, that is: a row that a hand has put in is one that the log does not give.
    """
    specimen = SPECIMENS[name]
    victims = violate(file, name)
    before = file.read_bytes()
    quick = check(file, quick=True)
    found = {violation.code: violation.run_ids for violation in quick.violations}
    if found:
        assert set(found) == {specimen.code} | specimen.also
    else:
        full = check(file)
        found = {violation.code: violation.run_ids for violation in full.violations}
        assert specimen.code in found
    assert set(victims) <= set(found[specimen.code])
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", sorted(OPENED))
def test_a_foreign_file_is_refused(file: Path, name: str) -> None:
    """A file with another identity or shape is not even opened."""
    violate(file, name)
    before = file.read_bytes()
    with pytest.raises(Incompatible), open_inactive(file, live_directory=None):
        pass
    assert file.read_bytes() == before


# Rows of no run in particular.
SHARED = {"run_view_content", "workflow_definitions"}


def test_a_dangling_name_is_said_to_be_its_runs(sound: Path, tmp_path: Path) -> None:
    """Whichever row of a run names a value that does not exist, the run is named."""
    (rule,) = [rule for rule in RULES if rule.code == "foreignKeys"]
    rows = [row for row in _names(sound) if row[0] not in SHARED]
    assert len({table for table, _, _ in rows}) > 10
    for table, row, column in rows:
        file = Path(shutil.copy(sound, tmp_path / "dangling.sqlite"))
        with closing(connect(str(file))) as connection:
            connection.pragma("foreign_keys", 0)
            connection.execute(
                f"UPDATE {table} SET {column} = zeroblob(32) WHERE rowid = :row",  # noqa: S608
                {"row": row},
            )
        found = Findings()
        with open_inactive(file, live_directory=None) as source:
            apply_rule(source, rule, found)
        (violation,) = found.violations()
        assert violation.run_ids, (table, column)


def _names(file: Path) -> Iterator[tuple[str, int, str]]:
    """Yield each column that names a value, with its table and a row that has one."""
    with closing(connect(str(file))) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%WITHOUT ROWID%'"
        ).fetchall()
        for (table,) in tables:
            for key in connection.execute(f"PRAGMA foreign_key_list({table!s})").fetchall():
                ((row,),) = connection.execute(
                    f"SELECT min(rowid) FROM {table!s} WHERE {key[3]!s} IS NOT NULL"  # noqa: S608
                ).fetchall()
                if isinstance(row, int) and key[2] == "blobs":
                    yield str(table), row, str(key[3])
