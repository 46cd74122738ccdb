"""A transaction is all or nothing, and says when nobody can know which."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import apsw
import pytest

from pi_workflows.base.errors import (
    Refused,
    TransitionDenied,
    Unavailable,
    WorkflowsError,
)
from pi_workflows.base.sql import Statement
from pi_workflows.store.errors import translate
from tests.store.bench import (
    COUNT_EVENTS,
    COUNT_PROJECTS,
    INSERT_PROJECT,
    Number,
    add_events,
    add_project,
    add_resource,
    append,
    number,
    open_store,
    projects,
    run,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pi_workflows.store.database import Store
    from pi_workflows.store.transaction import Transaction

DANGLING_RUN = Statement(
    "dangling_run",
    """
    INSERT INTO runs (
        run_id, resource_id, root_run_id, definition_digest, workflow_ref, launch_options_hash,
        status, input_hash, created_at, updated_at, recovery_root_run_id,
        recovery_source_message_id
    ) VALUES (
        'r', 'run-1', 'r', zeroblob(32), '', :blob_hash, 'queued', :blob_hash, 0, 0, 'r', 'missing'
    )
    """,
)
DEFINITION = Statement(
    "definition", "INSERT INTO workflow_definitions VALUES (zeroblob(32), 'w', :blob_hash, 0)"
)
COUNT_RUNS = Statement("count_runs", "SELECT count(*) FROM runs")
ANY_BLOB = Statement("any_blob", "SELECT blob_hash FROM blobs LIMIT 1")


def test_a_transaction_commits(store: Store) -> None:
    """What the body did is visible when it has ended, and not before."""
    with store.transaction() as transaction:
        transaction.projection.write(INSERT_PROJECT, project_id="p")
        assert number(transaction.read, COUNT_PROJECTS) == 1
        assert projects(store) == 0
    assert projects(store) == 1


def test_an_exception_undoes_everything(store: Store) -> None:
    """A body that fails leaves nothing, and the next one works."""
    with suppress(TransitionDenied), store.transaction() as transaction:
        transaction.projection.write(INSERT_PROJECT, project_id="p")
        raise TransitionDenied
    assert projects(store) == 0
    add_project(store, "p")
    assert projects(store) == 1


def test_a_savepoint_is_all_or_nothing(store: Store) -> None:
    """A refused command is undone alone; what came before and after it is committed."""
    with store.transaction() as transaction:
        with transaction.savepoint():
            transaction.projection.write(INSERT_PROJECT, project_id="a")
        with suppress(Refused), transaction.savepoint():
            add_resource(transaction, "run-1")
            append(transaction, "run-1", 1)
            raise TransitionDenied
        with transaction.savepoint():
            transaction.projection.write(INSERT_PROJECT, project_id="c")
            with suppress(Refused), transaction.savepoint():
                transaction.projection.write(INSERT_PROJECT, project_id="inner")
                raise TransitionDenied
    assert projects(store) == 2
    with store.snapshot() as snapshot:
        assert number(snapshot, COUNT_EVENTS) == 0


def test_a_savepoint_gives_its_event_numbers_back(store: Store) -> None:
    """The number of an event that was undone is given to the next one."""
    with store.transaction() as transaction:
        add_resource(transaction, "run-1")
        with suppress(Refused), transaction.savepoint():
            assert append(transaction, "run-1", 1) == 1
            raise TransitionDenied
        assert append(transaction, "run-1", 1) == 1


def test_a_write_transaction_is_immediate(store: Store) -> None:
    """The write lock is taken at once: a later upgrade could fail without waiting."""
    with store.transaction():
        rival = store.reader.connection
        rival.pragma("query_only", "OFF")
        rival.set_busy_timeout(0)
        with pytest.raises(apsw.BusyError):
            rival.execute("BEGIN IMMEDIATE")


def test_a_rival_writer_is_reported(store: Store) -> None:
    """A write lock that somebody else holds is `unavailable`, and changes nothing."""
    rival = store.reader.connection
    rival.pragma("query_only", "OFF")
    rival.execute("BEGIN IMMEDIATE")
    store.writer.connection.set_busy_timeout(0)
    with pytest.raises(Unavailable) as caught, store.transaction():
        raise AssertionError
    assert caught.value.reason_code == "writerBusy"
    rival.execute("ROLLBACK")
    add_project(store, "p")


def test_transactions_do_not_nest(store: Store) -> None:
    """A transaction inside another one is our bug."""
    with store.transaction(), pytest.raises(AssertionError, match="inside"), store.transaction():
        pass
    with store.snapshot(), pytest.raises(AssertionError, match="inside"), store.snapshot():
        pass


def test_a_constraint_is_our_bug(store: Store) -> None:
    """A row that the schema refuses is an AssertionError, never an answer to a client."""
    add_project(store, "p")
    with pytest.raises(AssertionError, match="UNIQUE"):
        add_project(store, "p")
    assert projects(store) == 1


@pytest.mark.parametrize("count", [0, 2])
def test_a_projector_changes_exactly_one_row(store: Store, count: int) -> None:
    """A write that changes no row, or two, is our bug and undoes the transaction."""
    for name in ("a", "b"):
        add_project(store, name)
    touch = Statement("touch", "UPDATE projects SET created_at = 1 WHERE created_at = :at")
    with (
        pytest.raises(AssertionError, match=f"touch changed {count} rows"),
        store.transaction() as transaction,
    ):
        transaction.projection.write(touch, at=0 if count else 5)
    ones = Statement("ones", "SELECT count(*) FROM projects WHERE created_at = 1")
    with store.snapshot() as snapshot:
        assert number(snapshot, ones) == 0


def test_one_row_is_one_row(store: Store) -> None:
    """A read of one row that finds two is our bug; one that finds none gives None."""
    names = Statement("names", "SELECT project_id FROM projects WHERE project_id >= :least")
    for name in ("a", "b"):
        add_project(store, name)
    with store.snapshot() as snapshot:
        assert snapshot.one(str, names, least="c") is None
        assert snapshot.one(str, names, least="b") == "b"
        with pytest.raises(AssertionError, match="names found 2 rows"):
            snapshot.one(str, names, least="a")
        assert list(snapshot.each(str, names, least="a")) == ["a", "b"]


def leave_key_open(transaction: Transaction) -> None:
    """Insert a run whose recovery message does not exist; that key is checked late."""
    blob_hash = transaction.read.one(bytes, ANY_BLOB)
    transaction.projection.write(DEFINITION, blob_hash=blob_hash)
    transaction.projection.write(DANGLING_RUN, blob_hash=blob_hash)


def test_a_key_left_open_is_caught_before_release(store: Store) -> None:
    """A dangling deferred key passes RELEASE and would fail COMMIT for the whole group."""
    add_events(store, "run-1", 1)
    with store.transaction() as transaction:
        with pytest.raises(AssertionError, match="a foreign key is left open"):
            leave_key_open_in_savepoint(transaction)
        assert number(transaction.read, COUNT_RUNS) == 0
        transaction.projection.write(INSERT_PROJECT, project_id="p")
    assert projects(store) == 1


def leave_key_open_in_savepoint(transaction: Transaction) -> None:
    """Do so as a command of a group."""
    with transaction.savepoint():
        leave_key_open(transaction)


def test_a_key_left_open_is_caught_before_commit(store: Store) -> None:
    """Without a savepoint the same key is caught before COMMIT, and all is undone."""
    add_events(store, "run-1", 1)
    with (
        pytest.raises(AssertionError, match="a foreign key is left open"),
        store.transaction() as transaction,
    ):
        leave_key_open(transaction)
    with store.snapshot() as snapshot:
        assert number(snapshot, COUNT_RUNS) == 0


def test_an_immediate_key_is_checked_at_once(store: Store) -> None:
    """Every other foreign key is checked by the statement that breaks it."""
    orphan = Statement("orphan", "INSERT INTO leases (resource_id) VALUES ('missing')")
    with pytest.raises(AssertionError, match="FOREIGN KEY"), store.transaction() as transaction:
        transaction.projection.write(orphan)


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.store.bench import *
store = open_store(Path(sys.argv[1]))
with store.transaction() as transaction:
    add_resource(transaction, "run-1")
    append(transaction, "run-1", 1)
    if sys.argv[2] == "inside":
        os.kill(os.getpid(), signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("when", "events"), [("inside", 0), ("after", 1)])
def test_kill_shows_all_or_nothing(tmp_path: Path, when: str, events: int) -> None:
    """Hostile cases 15 and 18: killed inside, neither event nor row; after COMMIT, both."""
    assert run(KILLED, str(tmp_path), when).returncode == -9
    store = open_store(tmp_path)
    with store.snapshot() as snapshot:
        assert number(snapshot, COUNT_EVENTS) == events
        resources = Statement("resources", "SELECT count(*) FROM resources")
        assert number(snapshot, resources) == events
    store.close()


def test_the_store_stays_on_its_thread(store: Store) -> None:
    """A transaction in another thread is our bug; a verification there is not."""
    seen: list[BaseException | int] = []

    def elsewhere() -> None:
        try:
            add_project(store, "p")
        except AssertionError as error:
            seen.append(error)
        with store.verification() as snapshot:
            seen.append(number(snapshot, COUNT_PROJECTS))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert isinstance(seen[0], AssertionError)
    assert "threads" in str(seen[0])
    assert seen[1] == 0


FORKED = """
import os, sys
from pathlib import Path
from tests.store.bench import *
store = open_store(Path(sys.argv[1]))
if os.fork() == 0:
    try:
        add_project(store, "p")
    except AssertionError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.slow
def test_the_store_stays_in_its_process(tmp_path: Path) -> None:
    """A connection that crossed a fork is never used: its locks belong to nobody."""
    assert "crossed a fork" in run(FORKED, str(tmp_path)).stdout


def test_every_failure_of_sqlite_has_a_meaning() -> None:
    """The table that translates SQLite's failures, row by row."""
    codes: dict[type[apsw.Error], str] = {
        apsw.FullError: "diskFull",
        apsw.BusyError: "writerBusy",
        apsw.LockedError: "writerBusy",
        apsw.IOError: "storageFault",
        apsw.NoMemError: "storageFault",
        apsw.CantOpenError: "storageFault",
        apsw.CorruptError: "stateCorrupt",
        apsw.NotADBError: "stateCorrupt",
    }
    for kind, code in codes.items():
        meaning = translate(kind("text"))
        assert isinstance(meaning, WorkflowsError)
        assert meaning.reason_code == code
    for kind in (apsw.ConstraintError, apsw.SQLError, apsw.AuthError, apsw.MisuseError):
        assert isinstance(translate(kind("text")), AssertionError)


def test_a_parameter_that_nobody_gave_is_our_bug(store: Store) -> None:
    """A query with a parameter that has no value fails; it does not find nothing."""
    query = Statement("query", "SELECT count(*) FROM projects WHERE project_id = :name")
    with store.snapshot() as snapshot, pytest.raises(KeyError):
        snapshot.one(Number, query)
