"""The live database over its life: log and checkpoints, being moved, stopping, measuring."""

from __future__ import annotations

import shutil
from contextlib import suppress
from typing import TYPE_CHECKING

import apsw
import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.sql import Statement
from pi_workflows.store.statistics import Totals, measure
from tests.store.bench import (
    COUNT_PROJECTS,
    INSERT_PROJECT,
    NOW_MS,
    add_events,
    add_project,
    number,
    open_store,
    projects,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pi_workflows.store.database import Store


def wal(store: Store) -> Path:
    """Return the path of the log."""
    return store.path.with_name("state.sqlite-wal")


def test_the_log_grows_until_it_is_checkpointed(store: Store) -> None:
    """The log in use grows with commits, is nothing after a checkpoint, and is used again."""
    assert store.wal_bytes() == 0
    sizes: list[int] = []
    for count in range(3):
        add_project(store, f"p{count}")
        sizes.append(store.wal_bytes())
    assert sizes == sorted(set(sizes))
    assert sizes[-1] == wal(store).stat().st_size
    done = store.checkpoint()
    assert done.frames == done.copied > 0
    assert not done.busy
    assert done.wal_bytes == sizes[-1]
    assert store.wal_bytes() == 0
    add_project(store, "again")
    assert store.wal_bytes() == sizes[0]
    assert wal(store).stat().st_size == sizes[-1]
    assert store.checkpoint(truncate=True).wal_bytes == 0
    assert wal(store).stat().st_size == 0


def test_nothing_is_checkpointed_by_itself(store: Store) -> None:
    """However long the log, only an explicit checkpoint writes the database file."""
    before = store.path.stat().st_mtime_ns
    for count in range(20):
        with store.transaction() as transaction:
            content = b"%d" % count * 300_000
            transaction.put_blob(Blob.of(content, "text/plain"), NOW_MS)
    assert store.wal_bytes() > 4 << 20
    assert store.path.stat().st_mtime_ns == before


def test_a_reader_keeps_a_checkpoint_from_finishing(store: Store) -> None:
    """A read under way is reported as busy, never as a failure, and keeps its moment."""
    store.writer.connection.set_busy_timeout(0)
    add_project(store, "a")
    with store.snapshot() as snapshot:
        assert number(snapshot, COUNT_PROJECTS) == 1
        add_project(store, "b")
        done = store.checkpoint()
        assert done.busy
        assert done.copied < done.frames
        assert store.checkpoint(truncate=True).busy
        assert store.wal_bytes() > 0
        assert number(snapshot, COUNT_PROJECTS) == 1
    assert not store.checkpoint(truncate=True).busy
    assert projects(store) == 2


def test_a_verification_reads_beside_the_writer(store: Store) -> None:
    """A verification keeps its moment while the writer commits."""
    add_project(store, "a")
    with store.verification() as snapshot:
        assert number(snapshot, COUNT_PROJECTS) == 1
        add_project(store, "b")
        assert number(snapshot, COUNT_PROJECTS) == 1
        assert snapshot.integrity() == []
        assert snapshot.foreign_keys() == []
    assert projects(store) == 2


def replace(path: Path) -> None:
    """Put an equal file in its place."""
    shutil.copy(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


def remove(path: Path) -> None:
    """Remove it."""
    path.unlink()


def rename(path: Path) -> None:
    """Give it another name."""
    path.rename(path.with_name("other"))


def rename_directory(path: Path) -> None:
    """Give its directory another name."""
    path.parent.rename(path.parent.with_name("other"))


@pytest.mark.parametrize("move", [replace, remove, rename, rename_directory])
def test_a_moved_file_is_noticed(tmp_path: Path, move: object) -> None:
    """A file that was renamed, replaced or removed under us shows, so that answering stops."""
    assert callable(move)
    store = open_store(tmp_path / "state")
    add_project(store, "p")
    assert not store.moved()
    move(store.path)
    assert store.moved()
    store.crash()


def test_a_stop_needs_no_transaction_before_it(store: Store, tmp_path: Path) -> None:
    """A store that committed nothing stops in order too, and opens again."""
    other = tmp_path / "other"
    open_store(other).close()
    assert [path.name for path in other.iterdir()] == ["state.sqlite"]
    open_store(other).close()
    assert store.wal_bytes() == 0


def test_a_crash_writes_nothing(tmp_path: Path) -> None:
    """Abandoning the connections leaves file and log as the last commit left them."""
    store = open_store(tmp_path)
    add_project(store, "p")
    before = [(path.stat().st_size, path.stat().st_mtime_ns) for path in (store.path, wal(store))]
    store.crash()
    after = [(path.stat().st_size, path.stat().st_mtime_ns) for path in (store.path, wal(store))]
    assert after == before
    again = open_store(tmp_path)
    assert projects(again) == 1
    again.close()


def test_an_open_transaction_does_not_survive_a_crash(tmp_path: Path) -> None:
    """What was not committed is gone."""
    store = open_store(tmp_path)
    with suppress(apsw.ConnectionClosedError), store.transaction() as transaction:
        transaction.projection.write(INSERT_PROJECT, project_id="p")
        store.crash()
    again = open_store(tmp_path)
    assert projects(again) == 0
    again.close()


def test_statements_are_measured(store: Store) -> None:
    """The same work costs the same steps of SQLite's machine, statement by statement."""
    totals = [Totals(), Totals()]
    add_events(store, "run-0", 2)
    for count, total in enumerate(totals, start=1):
        with measure(store, total.add):
            add_events(store, f"run-{count}", 2)
    assert totals[0].statements == totals[1].statements > 10
    assert totals[0].by_sql == totals[1].by_sql
    assert totals[0].vm_steps == sum(totals[0].by_sql.values())
    assert totals[0].full_scan_steps == totals[1].full_scan_steps
    before = totals[0].statements
    add_project(store, "unmeasured")
    assert totals[0].statements == before


def test_a_scan_shows(store: Store) -> None:
    """A statement that steps through a table is told from one that looks up."""
    for count in range(5):
        add_project(store, f"p{count}")
    scan = Statement("scan", "SELECT count(*) FROM projects WHERE created_at = 0")
    look_up = Statement("look_up", "SELECT count(*) FROM projects WHERE project_id = 'p1'")
    for statement, steps in ((scan, 4), (look_up, 0)):
        totals = Totals()
        with measure(store, totals.add), store.transaction() as transaction:
            assert number(transaction.read, statement) > 0
        assert totals.full_scan_steps == steps


def test_the_database_says_how_large_it_is(store: Store) -> None:
    """Pages, free ones and their size are read in one moment."""
    with store.snapshot() as snapshot:
        pages = snapshot.pages()
    assert pages.page_count * pages.page_bytes == store.path.stat().st_size
    assert pages.freelist_count == 0
