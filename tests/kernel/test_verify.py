"""Verification finds what a hand has changed, names the code and the run, and repairs nothing."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from migrations_forbidden import schema_text
from pi_workflows.base.errors import Corrupt, Incompatible
from pi_workflows.base.sql import Statement
from pi_workflows.kernel.comparison import SQL as COMPARED
from pi_workflows.kernel.digests import SQL as DIGESTS
from pi_workflows.kernel.order import WorkerIdentity
from pi_workflows.kernel.rules import SQL as RULES
from pi_workflows.kernel.verify import Verification, verify
from pi_workflows.store.driver import Connection, connect
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.scratch import create_scratch
from projections import route
from tests.kernel.harness import Harness, begin, end, finish, reserve, settle, try_effect
from tests.kernel.test_effects import IDEMPOTENT

# Journals and process-local facts: primary, so that no log gives them again.
NOT_REBUILT = {
    "blobs",
    "events",
    "host_commands",
    "run_view_content",
    "run_workers",
    "schema_meta",
    "session_entries",
    "session_events",
    "worker_messages",
    "workflow_host_state",
}
# Columns of rebuilt tables that belong to live processes.
PROCESS_LOCAL = {
    "leases": {
        "owner_type",
        "owner_id",
        "token_hash",
        "acquired_at",
        "heartbeat_at",
        "expires_at",
    }
}


# Columns whose values are text for people, whatever form it has.
TEXT = {
    ("channel_messages", "content_hash"),
    ("controller_queue", "last_error_hash"),
    ("controller_workflows", "error_hash"),
    ("effect_attempts", "error_hash"),
    ("effects", "error_hash"),
    ("event_blobs", "blob_hash"),
    ("host_commands", "error_hash"),
    ("interactive_submissions", "receipt_hash"),
    ("node_attempts", "error_hash"),
    ("node_attempts", "prompt_hash"),
    ("run_queue", "error_hash"),
    ("run_workers", "diagnostic_hash"),
    ("runs", "error_hash"),
    ("session_segments", "failure_hash"),
    ("worker_messages", "error_hash"),
    ("workflow_follow_ups", "prompt_hash"),
    ("workflow_follow_ups", "reason_hash"),
    ("workflow_messages", "content_hash"),
}


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """Return the file of an installation that stopped in order after two runs."""
    bench = Harness(tmp_path / "state")
    permit = bench.launch("plain")
    bench.do(begin("one", run_id="plain"), permit=permit)
    bench.do(end("one", 1, run_id="plain"), begin("two", run_id="plain"), permit=permit)
    bench.do(end("two", 2, run_id="plain"), permit=permit)
    bench.do(finish(2, run_id="plain"), permit=permit, identity=bench.client("key"))
    permit = bench.launch(workflow=IDEMPOTENT)
    bench.do(begin("deploy", node_type="action"), permit=permit)
    values = bench.do(reserve("deploy"), permit=permit).values
    assert isinstance(values, dict)
    effect_id = str(values["effectId"])
    bench.do(try_effect(effect_id), permit=permit)
    bench.spawn("worker-1", permit)
    bench.do(settle(effect_id), permit=permit, identity=WorkerIdentity("worker-1", "1", b"f" * 32))
    bench.store.close()
    return tmp_path / "state" / "state.sqlite"


@contextmanager
def hand(file: Path) -> Generator[Connection]:
    """Let a hand change the file behind our back."""
    connection = connect(str(file))
    try:
        yield connection
    finally:
        connection.close()


def check(file: Path, *, quick: bool = False) -> Verification:
    """Verify a file."""
    with open_inactive(file, live_directory=None) as source:
        return verify(source, quick=quick, scratch=lambda: create_scratch(None), projectors=route)


def test_a_sound_file_has_no_violations(stopped: Path) -> None:
    """The full check passes, its quick form is a part of it, and the file's bytes stay."""
    before = stopped.read_bytes()
    full, quick = check(stopped), check(stopped, quick=True)
    assert (full.violations, quick.violations) == ((), ())
    assert set(quick.checked) < set(full.checked)
    assert {"replay", "eventDigest", "blobDigest"} <= set(full.checked)
    assert stopped.read_bytes() == before


def _named() -> set[tuple[str, str]]:
    """Return the columns that name values."""
    connection = connect(":memory:")
    connection.execute(schema_text())
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return {
        (str(table), str(key[3]))
        for (table,) in tables
        for key in connection.execute(f"PRAGMA foreign_key_list({table!s})")
        if key[2] == "blobs"
    }


def _read_by(statement: Statement) -> set[tuple[str | None, str | None]]:
    """Return the columns that a statement reads."""
    connection = connect(":memory:")
    connection.execute(schema_text())
    read: set[tuple[str | None, str | None]] = set()

    def note(action: int, table: str | None, column: str | None, *_: str | None) -> int:
        if action == apsw.SQLITE_READ:
            read.add((table, column))
        return apsw.SQLITE_OK

    connection.authorizer = note
    connection.execute(f"EXPLAIN {statement.text}", {"digest": b""})
    return read


def test_every_value_that_is_read_as_json_is_held_to_be_json() -> None:
    """No column that names a value is forgotten, but the ones of text."""
    assert _named() - _read_by(RULES["media"]) == TEXT


def test_the_users_of_every_value_are_found() -> None:
    """Whatever column names a damaged value, its run is looked for there."""
    assert _named() <= _read_by(DIGESTS["users"])


def test_every_column_that_the_log_gives_is_compared() -> None:
    """No table and no column of a projection is forgotten, and the key's columns come first."""
    connection = connect(":memory:")
    connection.execute(schema_text())
    tables = {
        str(name)
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    } - {"sqlite_sequence"}
    assert set(COMPARED) == tables - NOT_REBUILT
    for table, statement in COMPARED.items():
        info = list(connection.execute(f"PRAGMA table_info({table})"))
        columns = {str(row[1]) for row in info}
        key = [str(row[1]) for row in sorted(info, key=lambda row: int(str(row[5]))) if row[5]]
        connection.execute(f"CREATE VIEW compared_{table} AS {statement.text}")
        seen = connection.execute(f"PRAGMA table_info(compared_{table})")
        compared = [str(row[1]) for row in seen]
        assert set(compared) == columns - PROCESS_LOCAL.get(table, set()), table
        assert compared[: len(key)] == key, table


@pytest.mark.slow
def test_a_flipped_byte_ends_no_check(stopped: Path) -> None:
    """Wherever a byte was changed, verification says what it finds instead of giving up."""
    sound = stopped.read_bytes()
    chance = random.Random(5)  # noqa: S311 - which bytes, not a secret
    found = 0
    for _ in range(60):
        damaged = bytearray(sound)
        for _ in range(4):
            damaged[chance.randrange(4_096, len(sound))] ^= 1 << chance.randrange(8)
        stopped.write_bytes(damaged)
        try:
            found += bool(check(stopped).violations)
        except (Corrupt, Incompatible):
            found += 1
    assert found > 0
    stopped.write_bytes(sound)


def test_a_payload_that_is_no_json_is_a_violation(stopped: Path) -> None:
    """A damaged event is reported with the others, and every later check still runs."""
    with hand(stopped) as connection:
        connection.execute(
            "UPDATE blobs SET content = CAST(replace(CAST(content AS TEXT), '{', '[') AS BLOB)"
            " WHERE blob_hash = (SELECT payload_hash FROM events WHERE event_seq = 4)"
        )
    result = check(stopped)
    assert {"blobDigest", "eventShape", "replay"} <= {found.code for found in result.violations}
    assert result.checked == check(stopped).checked
