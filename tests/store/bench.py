"""What the tests of the store build on: a store in a directory, rows to fill it with, its bytes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from pi_workflows.base.blob import Blob
from pi_workflows.base.sql import SqlValue, Statement
from pi_workflows.store.database import Store
from pi_workflows.store.driver import connect
from pi_workflows.store.records import EventRecord

if TYPE_CHECKING:
    from pathlib import Path

    from pi_workflows.base.sql import Read
    from pi_workflows.store.driver import Connection
    from pi_workflows.store.transaction import Transaction

NOW_MS = 1_700_000_000_000
VERSION = "0.0-test"

INSERT_RESOURCE = Statement(
    "insert_resource",
    """
    INSERT INTO resources (
        resource_id, resource_type, aggregate_key, revision, created_at, updated_at
    ) VALUES (:resource_id, 'run', :resource_id, 0, :at, :at)
    """,
)
INSERT_LEASE = Statement(
    "insert_lease",
    "INSERT INTO leases (resource_id, generation) VALUES (:resource_id, :generation)",
)
RAISE_REVISION = Statement(
    "raise_revision", "UPDATE resources SET revision = :revision WHERE resource_id = :resource_id"
)
INSERT_PROJECT = Statement(
    "insert_project", "INSERT INTO projects VALUES (:project_id, :project_id, 0)"
)
COUNT_PROJECTS = Statement("count_projects", "SELECT count(*) FROM projects")
COUNT_EVENTS = Statement("count_events", "SELECT count(*) FROM events")


BODY = Blob.json({"runId": "r"})
_DEFINITION = Statement(
    "definition", "INSERT INTO workflow_definitions VALUES (zeroblob(32), 'w', :blob_hash, 0)"
)
_RUN = Statement(
    "run",
    """
    INSERT INTO runs (
        run_id, resource_id, root_run_id, definition_digest, workflow_ref, launch_options_hash,
        status, input_hash, created_at, updated_at
    ) VALUES ('r', 'run-r', 'r', zeroblob(32), '', :blob_hash, 'queued', :blob_hash, 0, 0)
    """,
)


class Number(NamedTuple):
    """A row of one number."""

    value: int


def open_store(directory: Path) -> Store:
    """Create or open the store of a state directory."""
    return Store.open(directory, now_ms=NOW_MS, app_version=VERSION)


def number(read: Read, statement: Statement, **values: SqlValue) -> int:
    """Return the one number that a query gives."""
    row = read.one(Number, statement, **values)
    assert row is not None
    return row.value


def projects(store: Store) -> int:
    """Return how many projects are committed."""
    with store.snapshot() as snapshot:
        return number(snapshot, COUNT_PROJECTS)


def add_project(store: Store, project_id: str) -> None:
    """Commit one row."""
    with store.transaction() as transaction:
        transaction.projection.write(INSERT_PROJECT, project_id=project_id)


def add_resource(transaction: Transaction, resource_id: str, generation: int = 0) -> None:
    """Insert an aggregate at revision 0, and its lease."""
    transaction.projection.write(INSERT_RESOURCE, resource_id=resource_id, at=NOW_MS)
    transaction.projection.write(INSERT_LEASE, resource_id=resource_id, generation=generation)


def add_run(transaction: Transaction) -> None:
    """Insert run `r`, whose input and options are `BODY`."""
    transaction.put_blob(BODY, NOW_MS)
    add_resource(transaction, "run-r")
    transaction.projection.write(_DEFINITION, blob_hash=BODY.digest)
    transaction.projection.write(_RUN, blob_hash=BODY.digest)


def append(
    transaction: Transaction,
    resource_id: str,
    revision: int,
    payload: dict[str, str | int] | None = None,
    *,
    blobs: tuple[Blob, ...] = (),
) -> int:
    """Raise an aggregate's revision and append the event that says so; return its number."""
    for blob in blobs:
        transaction.put_blob(blob, NOW_MS)
    body = Blob.json(dict(payload or {"v": 1, "revision": revision}))
    transaction.projection.write(RAISE_REVISION, resource_id=resource_id, revision=revision)
    return transaction.append(
        EventRecord(
            event_id=f"event-{resource_id}-{revision}",
            resource_id=resource_id,
            resource_revision=revision,
            event_type="run.started",
            actor_type="system",
            actor_id=None,
            lease_generation=None,
            payload=body.content,
            payload_hash=body.digest,
            recorded_at_ms=NOW_MS + revision,
            blobs=tuple(blob.digest for blob in blobs),
        )
    )


def add_events(store: Store, resource_id: str, count: int) -> list[int]:
    """Commit an aggregate with some events; return their numbers."""
    with store.transaction() as transaction:
        add_resource(transaction, resource_id)
        return [append(transaction, resource_id, revision + 1) for revision in range(count)]


def raw(path: Path) -> Connection:
    """Open a database that nobody has open, past every guard, to plant damage in it."""
    connection = connect(str(path))
    connection.pragma("foreign_keys", "ON")
    return connection


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a Python program in a process of its own, from the repository's root."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def bytes_of(directory: Path) -> dict[str, str]:
    """Return name and digest of the database and its log, read by a process without its locks."""
    program = (
        "import hashlib, pathlib, sys\n"
        "for path in sorted(pathlib.Path(sys.argv[1]).glob('state.sqlite*')):\n"
        "    if not path.name.endswith('-shm') and path.is_file():\n"
        "        print(path.name, hashlib.sha256(path.read_bytes()).hexdigest())\n"
    )
    done = run(program, str(directory))
    assert done.returncode == 0, done.stderr
    lines = (line.partition(" ") for line in done.stdout.splitlines())
    return {name: digest for name, _, digest in lines}


def is_locked(store: Store) -> bool:
    """Return whether a process that reads the live file is kept out."""
    program = (
        "import apsw, sys\n"
        "connection = apsw.Connection(sys.argv[1])\n"
        "try:\n"
        "    connection.execute('SELECT * FROM runs').fetchall()\n"
        "except apsw.BusyError:\n"
        "    print('locked')\n"
    )
    done = run(program, str(store.path))
    assert done.returncode == 0, done.stderr
    return done.stdout == "locked\n"


def sha256(data: bytes) -> bytes:
    """Return the digest of some bytes."""
    return hashlib.sha256(data).digest()
