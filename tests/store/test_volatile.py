"""Facts about live processes: the server's epoch, runner processes, samples of active time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import OwnershipLost
from pi_workflows.base.sql import Statement
from pi_workflows.store.volatile import (
    LiveWorker,
    NewWorker,
    ServerClaim,
    ServerState,
    heartbeat_server,
    insert_worker,
    live_workers,
    release_server_epoch,
    sample_active_time,
    server_state,
    take_server_epoch,
    worker_ended,
    worker_ready,
    worker_running,
    worker_spawned,
)
from tests.store.bench import BODY, NOW_MS, add_run

if TYPE_CHECKING:
    from pi_workflows.store.database import Store
    from pi_workflows.store.volatile import WorkerEnd

CLAIM = ServerClaim("server-1", b"t" * 32, 42, "start-1", NOW_MS + 1000)
WORKER = NewWorker("worker-1", "r", 1, 1, BODY.digest, 7)


def state(store: Store) -> ServerState:
    """Return the stored server."""
    with store.snapshot() as snapshot:
        return server_state(snapshot)


def test_each_server_gets_the_next_epoch(store: Store) -> None:
    """A server that holds the system's lock takes the next epoch, whatever is stored."""
    assert state(store) == ServerState(0, None, None, None, None, None, None)
    with store.transaction() as transaction:
        assert take_server_epoch(transaction, CLAIM, NOW_MS) == 1
        transaction.check_epoch(1)
    second = replace(CLAIM, host_id="server-2", expires_at_ms=NOW_MS + 9)
    with store.transaction() as transaction:
        assert take_server_epoch(transaction, second, NOW_MS + 1) == 2
        with pytest.raises(OwnershipLost) as caught:
            transaction.check_epoch(1)
    assert caught.value.reason_code == "ownerChanged"
    assert state(store) == ServerState(
        2, "server-2", 42, "start-1", NOW_MS + 1, NOW_MS + 1, NOW_MS + 9
    )


def test_a_heartbeat_moves_the_end(store: Store) -> None:
    """A heartbeat in time moves the end; one after it, or of an older epoch, does not."""
    with store.transaction() as transaction:
        take_server_epoch(transaction, CLAIM, NOW_MS)
        heartbeat_server(transaction, 1, NOW_MS + 1500, NOW_MS + 500)
    assert state(store).expires_at_ms == NOW_MS + 1500
    with store.transaction() as transaction:
        with pytest.raises(OwnershipLost) as caught:
            heartbeat_server(transaction, 1, NOW_MS + 9000, NOW_MS + 1500)
        assert caught.value.reason_code == "expired"
        with pytest.raises(OwnershipLost) as caught:
            heartbeat_server(transaction, 2, NOW_MS + 9000, NOW_MS)
        assert caught.value.reason_code == "ownerChanged"
    assert state(store).expires_at_ms == NOW_MS + 1500


def test_an_orderly_stop_clears_the_claim(store: Store) -> None:
    """At an orderly stop the epoch alone stays; another server's claim is left alone."""
    with store.transaction() as transaction:
        take_server_epoch(transaction, CLAIM, NOW_MS)
        assert not release_server_epoch(transaction, 2)
        assert release_server_epoch(transaction, 1)
        assert not release_server_epoch(transaction, 1)
    assert state(store) == ServerState(1, None, None, None, None, None, None)


@pytest.fixture
def launched(store: Store) -> Store:
    """A store with a run whose runner is about to be spawned."""
    with store.transaction() as transaction:
        add_run(transaction)
        insert_worker(transaction, WORKER, NOW_MS)
    return store


def workers(store: Store) -> list[LiveWorker]:
    """Return the runner processes that have not ended."""
    with store.snapshot() as snapshot:
        return live_workers(snapshot)


def test_a_runner_goes_from_starting_to_running(launched: Store) -> None:
    """A runner is recorded before it is spawned, then spawned, ready, running, each once."""
    expected = LiveWorker("worker-1", "r", 1, 1, 7, None, None, "starting", NOW_MS)
    assert workers(launched) == [expected]
    with launched.transaction() as transaction:
        assert not worker_running(transaction, "worker-1")
        worker_spawned(transaction, "worker-1", 99, "start-9")
        with pytest.raises(AssertionError, match="spawned twice"):
            worker_spawned(transaction, "worker-1", 99, "start-9")
        assert worker_ready(transaction, "worker-1", NOW_MS + 1)
        assert not worker_ready(transaction, "worker-1", NOW_MS + 2)
        assert worker_running(transaction, "worker-1")
    spawned = expected._replace(pid=99, process_start_identity="start-9", status="running")
    assert workers(launched) == [spawned]


@pytest.mark.parametrize(
    "status", ["exited", "cancelled", "timedOut", "crashed", "claimLost", "orphaned"]
)
def test_a_runner_ends_once(launched: Store, status: WorkerEnd) -> None:
    """The first report of an end is kept; what comes later changes nothing."""
    said = Blob.text("said last")
    with launched.transaction() as transaction:
        transaction.put_blob(said, NOW_MS)
        assert worker_ended(
            transaction,
            "worker-1",
            status,
            NOW_MS + 5,
            exit_code=1,
            signal="SIGTERM",
            diagnostic_hash=said.digest,
        )
        assert not worker_ended(transaction, "worker-1", "crashed", NOW_MS + 6)
        assert not worker_ready(transaction, "worker-1", NOW_MS + 7)
    assert workers(launched) == []
    ended = Statement("ended", "SELECT status, finished_at, exit_code, signal FROM run_workers")
    with launched.snapshot() as snapshot:
        row = snapshot.one(lambda *values: values, ended)
    assert row == (status, NOW_MS + 5, 1, "SIGTERM")


def test_a_run_has_one_live_runner(launched: Store) -> None:
    """A second live runner of a run is refused by the schema; after the first ended it is not."""
    second = replace(WORKER, worker_epoch="worker-2", generation=2)
    with launched.transaction() as transaction:
        with pytest.raises(AssertionError, match="UNIQUE"):
            insert_worker(transaction, second, NOW_MS)
        worker_ended(transaction, "worker-1", "crashed", NOW_MS)
        insert_worker(transaction, second, NOW_MS)
    assert [worker.worker_epoch for worker in workers(launched)] == ["worker-2"]


class Interval(NamedTuple):
    """What a sample moves."""

    observed_at: int
    elapsed_ms: int


def test_active_time_never_falls(launched: Store) -> None:
    """A sample moves an open interval on, never back, and leaves a closed one alone."""
    attempt = Statement(
        "attempt",
        "INSERT INTO node_attempts (attempt_id, run_id, node_id, visit_number, attempt_number,"
        " node_type, status, created_at, updated_at)"
        " VALUES ('a', 'r', 'n', 1, 1, 'compute', 'running', 0, 0)",
    )
    interval = Statement(
        "interval",
        "INSERT INTO attempt_active_intervals (attempt_id, interval_number, started_at,"
        " observed_at) VALUES ('a', 1, 100, 100)",
    )
    close = Statement("close", "UPDATE attempt_active_intervals SET ended_at = 200")
    read = Statement("read", "SELECT observed_at, elapsed_ms FROM attempt_active_intervals")
    with launched.transaction() as transaction:
        transaction.projection.write(attempt)
        transaction.projection.write(interval)
        for observed, elapsed, after in (
            (150, 40, Interval(150, 40)),
            (90, 60, Interval(150, 60)),
            (170, 50, Interval(170, 60)),
        ):
            assert sample_active_time(
                transaction, "a", 1, observed_at_ms=observed, elapsed_ms=elapsed
            )
            assert transaction.read.one(Interval, read) == after
        assert not sample_active_time(transaction, "a", 2, observed_at_ms=180, elapsed_ms=70)
        transaction.projection.write(close)
        assert not sample_active_time(transaction, "a", 1, observed_at_ms=180, elapsed_ms=70)
