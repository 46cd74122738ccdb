"""A capsule is one tree of runs, whole, alone, and as hard to forge as what it was taken from."""

from __future__ import annotations

import random
import re
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw
import pytest

from pi_workflows.audit.capsule import write_capsule
from pi_workflows.audit.explaining import explain_file
from pi_workflows.audit.rebuilding import rebuild_file
from pi_workflows.audit.time_travel import view_at
from pi_workflows.audit.verification import verify_file
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.sql import SqlValue
from pi_workflows.store.copying import TREE as COPIED
from pi_workflows.store.driver import Connection, connect
from tests.audit.pages import FileMap
from tests.audit.population import SEED

# Rows about the file itself and its server, which every database has.
_OF_THE_FILE: Final = frozenset({"schema_meta", "workflow_host_state", "sqlite_sequence"})
_FLIPS: Final = 40
UNLINK: Final = (
    "DELETE FROM event_blobs WHERE event_seq IN"
    " (SELECT event_seq FROM events WHERE event_type = 'attempt.settled')"
)


def reading(file: Path) -> closing[Connection]:
    """Return a connection that only reads."""
    return closing(connect(str(file), flags=apsw.SQLITE_OPEN_READONLY))


def tables(connection: Connection) -> list[str]:
    """Return the names of all tables."""
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    return [str(name) for (name,) in found]


def rows(connection: Connection, table: str) -> set[tuple[SqlValue, ...]]:
    """Return what a table holds."""
    return set(connection.execute(f"SELECT * FROM {table}"))  # noqa: S608 - a test's own


def run_ids(file: Path) -> list[str]:
    """Return every run."""
    with reading(file) as connection:
        return [str(run_id) for (run_id,) in connection.execute("SELECT run_id FROM runs")]


@pytest.fixture
def capsule(every_kind: Path, tmp_path: Path) -> Path:
    """Return a capsule of the longest of a chain of restarts."""
    with reading(every_kind) as connection:
        ((run_id,),) = connection.execute("SELECT run_id FROM runs WHERE restart_number = 2")
    file = tmp_path / "capsule.sqlite"
    write_capsule(every_kind, file, live_directory=None, run_id=str(run_id))
    return file


def violations(file: Path) -> dict[str, tuple[str, ...]]:
    """Return the runs that each violation of a file names."""
    found = verify_file(file, live_directory=None, is_quick=False).violations
    return {violation.code: violation.run_ids for violation in found}


@pytest.mark.slow
def test_a_capsule_says_what_its_source_says(every_kind: Path, tmp_path: Path) -> None:
    """Of every run: it verifies clean, rebuilds identical, and tells and shows the same."""
    for number, run_id in enumerate(run_ids(every_kind)):
        file = tmp_path / f"{number}.sqlite"
        written = write_capsule(every_kind, file, live_directory=None, run_id=run_id)
        assert written.verification.violations == ()
        assert written.left_out == {}
        assert violations(file) == {}
        assert rebuild_file(file, live_directory=None).is_identical
        for member in written.run_ids:
            assert explain_file(file, live_directory=None, run_id=member) == explain_file(
                every_kind, live_directory=None, run_id=member
            )
        with reading(file) as connection:
            ((last,),) = connection.execute("SELECT max(event_seq) FROM events")
        assert isinstance(last, int)
        with (
            view_at(every_kind, live_directory=None, event_seq=last, run_id=run_id) as there,
            view_at(file, live_directory=None, event_seq=last, run_id=run_id) as here,
        ):
            assert here.content == there.content


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE runs SET finished_at = NULL WHERE status = 'completed'",
        "UPDATE runs SET status = 'bogus' WHERE status = 'completed'",
        "UPDATE runs SET title = 'forged' WHERE status = 'completed'",
        UNLINK,
        "DELETE FROM workflow_host_state",
    ],
)
def test_what_is_broken_is_handed_on(every_kind: Path, tmp_path: Path, damage: str) -> None:
    """A capsule of a damaged run is written as it stands, with its violations and no new ones."""
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(every_kind.read_bytes())
    with closing(connect(str(broken))) as connection:
        connection.pragma("ignore_check_constraints", 1)
        connection.execute(damage)
        ((run_id,),) = connection.execute(
            "SELECT run_id FROM runs WHERE resource_id ="
            " (SELECT resource_id FROM events WHERE event_type = 'run.completed')"
        )
    source = violations(broken)
    written = write_capsule(
        broken, tmp_path / "capsule.sqlite", live_directory=None, run_id=str(run_id)
    )
    found = {violation.code for violation in written.verification.violations}
    # SQLite tests the constraints of rows only in a file that it may write.
    assert found - {"integrity"} <= set(source)
    assert source
    assert found or damage.endswith("workflow_host_state")


def test_every_value_of_a_copied_row_is_copied(every_kind: Path) -> None:
    """The statement that copies values looks at each foreign key to them that the schema has."""
    with reading(every_kind) as connection:
        keys = {
            (table, str(key[3]))
            for table in tables(connection)
            if table in COPIED
            for key in connection.execute(f"PRAGMA foreign_key_list({table})")
            if key[2] == "blobs"
        }
    looked = re.findall(r"SELECT (\w+) FROM main\.(\w+)", COPIED["blobs"].text)
    assert keys == {(table, column) for column, table in looked}
    assert len(keys) > 30


@pytest.mark.slow
def test_a_capsule_holds_one_tree_and_nothing_else(every_kind: Path, tmp_path: Path) -> None:
    """Each row stands in its source as it is, no value is there unused, and no other run's name."""
    with reading(every_kind) as connection:
        names = {
            str(name): str(root)
            for name, root in connection.execute(
                "SELECT run_id, root_run_id FROM runs"
                " UNION ALL SELECT resource_id, root_run_id FROM runs"
                " UNION ALL SELECT e.resource_id, r.root_run_id FROM effects AS e"
                " JOIN runs AS r ON r.resource_id = e.source_resource_id"
            )
        }
        sources = {table: rows(connection, table) for table in tables(connection)}
    for number, root in enumerate(sorted(set(names.values()))):
        file = tmp_path / f"{number}.sqlite"
        write_capsule(every_kind, file, live_directory=None, run_id=root)
        strangers = {name for name, of in names.items() if of != root}
        with reading(file) as connection:
            held = {table: rows(connection, table) for table in tables(connection)}
            used = _named_values(connection)
        for table, found in held.items():
            if table == "leases":
                # Who holds a claim is a fact about a process, which no other file has.
                assert {row[:2] for row in found} <= {row[:2] for row in sources[table]}
            elif table not in _OF_THE_FILE:
                assert found <= sources[table], table
            told = {value for row in found for value in row if isinstance(value, str)}
            assert not told & strangers, table
        assert {row[0] for row in held["blobs"]} == used
        content = file.read_bytes()
        assert not [name for name in strangers if name.encode() in content]


def _named_values(connection: Connection) -> set[SqlValue]:
    """Return the digest of every value that a row names."""
    columns = [
        (table, str(key[3]))
        for table in tables(connection)
        for key in connection.execute(f"PRAGMA foreign_key_list({table})")
        if key[2] == "blobs"
    ]
    return {
        digest
        for table, column in columns
        for (digest,) in connection.execute(
            f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608 - as above
        )
    }


@pytest.mark.slow
def test_a_changed_byte_of_a_capsules_event_is_found(capsule: Path) -> None:
    """Wherever in an event's row it is."""
    sound = capsule.read_bytes()
    where = [
        offset
        for offset, place in enumerate(FileMap(sound).places)
        if (place.tree, place.part) == ("events", "value")
    ]
    chance = random.Random(SEED)  # noqa: S311 - which bytes, no secret
    for offset in chance.sample(where, _FLIPS):
        damaged = bytearray(sound)
        damaged[offset] ^= chance.randrange(1, 256)
        capsule.write_bytes(damaged)
        assert violations(capsule) != {}, offset


# Two events of one resource, one behind the other.
_PAIR: Final = (
    "CREATE TEMP TABLE pair AS SELECT a.event_seq AS one, b.event_seq AS two,"
    " a.payload_hash AS first, b.payload_hash AS second FROM events AS a"
    " JOIN events AS b ON b.resource_id = a.resource_id"
    " AND b.resource_revision = a.resource_revision + 1 ORDER BY 1 LIMIT 1 OFFSET 3"
)
_FORGERIES: Final = {
    "another time": (
        "eventDigest",
        "UPDATE events SET recorded_at = recorded_at - 1 WHERE event_seq = (SELECT one FROM pair)",
    ),
    "another actor": (
        "eventDigest",
        "UPDATE events SET actor_type = 'human' WHERE event_seq = (SELECT one FROM pair)",
    ),
    "an event removed": (
        "revisionChain",
        "DELETE FROM event_blobs WHERE event_seq = (SELECT one FROM pair)",
        "DELETE FROM events WHERE event_seq = (SELECT one FROM pair)",
    ),
    "two events swapped": (
        "eventDigest",
        (
            "UPDATE events SET event_seq = -event_seq"
            " WHERE event_seq IN (SELECT one FROM pair UNION SELECT two FROM pair)"
        ),
        (
            "UPDATE events SET event_seq = (SELECT one + two FROM pair) + event_seq"
            " WHERE event_seq < 0"
        ),
    ),
    "what they say swapped": (
        "eventDigest",
        (
            "UPDATE events SET payload_hash ="
            " (SELECT iif(event_seq = one, second, first) FROM pair)"
            " WHERE event_seq IN (SELECT one FROM pair UNION SELECT two FROM pair)"
        ),
    ),
}


@pytest.mark.parametrize("forgery", _FORGERIES)
def test_a_forged_log_is_refused(capsule: Path, forgery: str) -> None:
    """A changed, a removed and two swapped events are found, and the run is named."""
    code, *changes = _FORGERIES[forgery]
    with closing(connect(str(capsule))) as connection:
        connection.pragma("foreign_keys", 0)
        connection.execute(_PAIR)
        before = rows(connection, "events")
        for change in changes:
            connection.execute(change)
        assert rows(connection, "events") != before
        owners = {
            str(run_id)
            for (run_id,) in connection.execute("SELECT run_id FROM runs ORDER BY run_id")
        }
    found = violations(capsule)
    assert code in found, found
    assert set(found[code]) & owners, found


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
def test_no_capsule_becomes_a_part_of_a_database(
    every_kind: Path, tmp_path: Path, suffix: str
) -> None:
    """A name that SQLite would read with a file beside it is refused, and nothing is written."""
    beside = tmp_path / "own.sqlite"
    beside.write_bytes(b"somebody's")
    with pytest.raises(PayloadInvalid) as caught:
        write_capsule(
            every_kind,
            tmp_path / f"own.sqlite{suffix}",
            live_directory=None,
            run_id=run_ids(every_kind)[0],
        )
    assert caught.value.reason_code == "targetUnusable"
    assert list(tmp_path.iterdir()) == [beside]


def test_a_target_that_exists_is_no_damage(every_kind: Path, tmp_path: Path) -> None:
    """What is wrong with the target is said of the target, and the source is not blamed."""
    taken = tmp_path / "taken.sqlite"
    taken.write_bytes(b"somebody's")
    with pytest.raises(PayloadInvalid) as caught:
        write_capsule(every_kind, taken, live_directory=None, run_id=run_ids(every_kind)[0])
    assert (caught.value.reason_code, taken.read_bytes()) == ("targetExists", b"somebody's")
