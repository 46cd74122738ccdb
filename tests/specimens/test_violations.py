"""For every code of a verification there is an edit that it finds, and it says whose the row is."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from migrations_forbidden import schema_text
from migrations_forbidden.specimens.__main__ import write_violations
from migrations_forbidden.specimens.violation import specimens, violate
from pi_workflows.base.errors import Incompatible
from pi_workflows.kernel.comparison import selected_columns
from pi_workflows.kernel.findings import Findings
from pi_workflows.kernel.references import KEYS, check_references
from pi_workflows.kernel.verify import CODES
from pi_workflows.store.driver import connect
from pi_workflows.store.inactive import open_inactive
from tests.specimens.checked import check
from tests.specimens.test_unwritten import furnish

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


def test_each_is_written_for_people(
    sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a population of every kind each specimen is a file, and a line says what it violates."""
    write_violations(sound, tmp_path / "new")
    written = {file.stem for file in (tmp_path / "new").iterdir()}
    assert written == set(SPECIMENS)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("  ")[2] for line in lines] == [
        f"violates: {specimen.code}" for specimen in SPECIMENS.values()
    ]


def test_what_cannot_be_written_is_said(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file is left only where the backup had the rows to change."""
    write_violations(base, tmp_path / "new")
    written = {file.stem for file in (tmp_path / "new").iterdir()}
    missing = [line for line in capsys.readouterr().out.splitlines() if "not made" in line]
    assert "queueTimes" in written
    assert "followUps-queued" not in written
    assert len(missing) == len(SPECIMENS) - len(written)


@pytest.mark.parametrize("name", sorted(OPENED))
def test_a_foreign_file_is_refused(file: Path, name: str) -> None:
    """A file with another identity or shape is not even opened."""
    violate(file, name)
    before = file.read_bytes()
    with pytest.raises(Incompatible), open_inactive(file, live_directory=None):
        pass
    assert file.read_bytes() == before


# A change of settings, which no sound scope without events has.
CHANGE = """
INSERT INTO workflow_setting_changes
SELECT 'change', scope_id, 'q', 1, 'human', NULL, 'person', initial_hash, initial_hash,
       initial_hash, 1
FROM workflow_settings
"""


def test_a_dangling_name_is_said_to_be_its_runs(sound: Path, tmp_path: Path) -> None:
    """Whichever row of a run names a value that does not exist, the run is named."""
    furnished = Path(shutil.copy(sound, tmp_path / "furnished.sqlite"))
    furnish(furnished)
    with closing(connect(str(furnished))) as connection:
        connection.execute(CHANGE)
    rows = list(_names(furnished))
    assert {table for table, _, _ in rows} >= NAMING
    for table, row, column in rows:
        file = Path(shutil.copy(furnished, tmp_path / "dangling.sqlite"))
        with closing(connect(str(file))) as connection:
            connection.pragma("foreign_keys", 0)
            connection.execute(
                f"UPDATE {table} SET {column} = zeroblob(32) WHERE {row}"  # noqa: S608
            )
            assert connection.changes() == 1, (table, column)
        found = Findings()
        with open_inactive(file, live_directory=None) as source:
            check_references(source, found, lambda _: None)
        (violation,) = found.violations()
        assert (violation.code, violation.count) == ("foreignKeys", 1)
        assert violation.run_ids, (table, column)


# Tables whose rows lead to their run by others only.
NAMING = {
    "channel_messages",
    "controller_resources",
    "effect_attempts",
    "event_blobs",
    "events",
    "human_decision_resolutions",
    "human_decision_submissions",
    "interactive_submissions",
    "worker_messages",
    "workflow_definitions",
    "workflow_setting_changes",
    "workflow_updates",
}


def test_every_row_that_names_others_has_a_key() -> None:
    """A row is known by its number; the columns of its key are those of the table."""
    with closing(connect(":memory:")) as connection:
        connection.execute(schema_text())
        tables = {
            str(name)
            for name, text in connection.execute(
                "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
            ).fetchall()
            if "REFERENCES" in str(text) and "WITHOUT ROWID" not in str(text)
        }
        assert set(KEYS) == tables
        for table, statement in KEYS.items():
            info = connection.execute(f"PRAGMA table_info({table})").fetchall()
            key = sorted((int(str(column[5])), str(column[1])) for column in info if column[5])
            assert selected_columns(statement) == tuple(name for _, name in key)


def _names(file: Path) -> Iterator[tuple[str, str, str]]:
    """Yield each column that names a value, with its table and a row that has one."""
    with closing(connect(str(file))) as connection:
        tables = connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
        ).fetchall()
        for table, text in tables:
            key = "rowid" if "WITHOUT ROWID" not in str(text) else "(event_seq, blob_hash)"
            columns = key.strip("()")
            for name in connection.execute(f"PRAGMA foreign_key_list({table!s})").fetchall():
                chosen = f"SELECT {columns} FROM {table!s} WHERE {name[3]!s} IS NOT NULL LIMIT 1"  # noqa: S608
                if name[2] == "blobs" and connection.execute(chosen).fetchall():
                    yield str(table), f"{key} = ({chosen})", str(name[3])
