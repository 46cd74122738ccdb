"""What was captured of sessions, in files that no server has open."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from pi_workflows.audit.capsule import write_capsule
from pi_workflows.audit.changes import changes_between
from pi_workflows.audit.explaining import explain_file
from pi_workflows.audit.rebuilding import rebuild_file
from pi_workflows.audit.time_travel import view_at
from pi_workflows.audit.verification import verify_file
from pi_workflows.base import canonical
from pi_workflows.domain.run.control import CancelRun
from pi_workflows.store.driver import connect
from tests.kernel.harness import Harness
from tests.kernel.recording import bind, complete, entries, events

JOURNALS: Final = ("session_entries", "session_events", "viewer_session_checkpoints")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the file of an installation that stopped in order after two recorded runs."""
    bench = Harness(tmp_path / "state")
    for run_id in ("run-1", "run-2"):
        bench.do(bench.start(run_id, session=f"session-of-{run_id}"))
        bench.do(bind(run_id))
    for first in (1, 201):
        for run_id in ("run-1", "run-2"):
            bench.do(events(range(first, first + 200), run_id))
            bench.do(entries(range(first, first + 3) if first == 1 else range(4, 6), run_id))
    bench.do(complete(5, 400, "run-1"))
    bench.do(CancelRun("run-1"))
    # Behind the last event of the run.
    bench.do(events(range(401, 404), "run-2"))
    bench.store.close()
    return tmp_path / "state" / "state.sqlite"


def rows(file: Path, table: str, where: str = "true") -> list[tuple[Any, ...]]:
    """Return rows of a table."""
    query = f"SELECT * FROM {table} WHERE {where} ORDER BY 1, 2, 3"  # noqa: S608 - a test's own
    with closing(connect(str(file))) as connection:
        return list(connection.execute(query))


def last_event(file: Path) -> int:
    """Return the number of the last event."""
    return int(max(row[0] for row in rows(file, "events")))


def session_at(file: Path, event_seq: int, run_id: str) -> Any:
    """Return the session of a run as it stood at an event."""
    with view_at(file, live_directory=None, event_seq=event_seq, run_id=run_id) as moment:
        document: Any = canonical.decode(moment.content)
        return document["session"]


def test_a_rebuilt_file_has_its_captures(file: Path, tmp_path: Path) -> None:
    """The journals are appended again as they stand, and everything that follows from them is."""
    to = tmp_path / "rebuilt.sqlite"
    assert rebuild_file(file, live_directory=None, to=to).is_identical
    for table in (*JOURNALS, "session_segments", "viewer_deltas"):
        assert rows(to, table) == rows(file, table)
        assert rows(file, table)
    assert verify_file(to, live_directory=None, is_quick=False).violations == ()


def test_a_capsule_has_the_captures_of_its_tree(file: Path, tmp_path: Path) -> None:
    """Those of its own runs and no others; it verifies, and tells the same."""
    capsule = tmp_path / "capsule.sqlite"
    written = write_capsule(file, capsule, live_directory=None, run_id="run-2")
    assert written.verification.violations == ()
    for table in JOURNALS:
        assert rows(capsule, table) == rows(file, table, "run_id = 'run-2'")
    assert rebuild_file(capsule, live_directory=None).is_identical
    for run_file in (file, capsule):
        assert explain_file(run_file, live_directory=None, run_id="run-2")


def test_a_moment_has_what_was_captured_until_then(file: Path) -> None:
    """A replay up to an event has the flushes before it, of a tree as of the whole log."""
    opened = next(row[0] for row in rows(file, "events") if row[4] == "segment.opened")
    completed = next(row[0] for row in rows(file, "events") if row[4] == "segment.completed")
    before = session_at(file, opened, "run-1")
    assert (before["eventPage"]["total"], before["capture"]["status"]) == (0, "recording")
    after = session_at(file, completed, "run-1")
    assert (after["eventPage"]["total"], after["entryPage"]["total"]) == (400, 5)
    assert after["capture"]["status"] == "complete"
    # The run's last own event came first: nothing says that this was captured by then.
    assert session_at(file, last_event(file), "run-2")["eventPage"]["total"] == 0


def test_a_change_names_what_was_captured(file: Path) -> None:
    """Between two moments the captures grew, and the end of one is told."""
    found = changes_between(file, live_directory=None, from_seq=4, to_seq=last_event(file))
    changed = {change.key["segment_id"]: change for change in found.changes if
               change.table == "session_segments"}  # fmt: skip
    (segment,) = changed.values()
    assert segment.run_ids == ("run-1",)
    assert {"status", "event_count", "event_digest"} <= {each.name for each in segment.columns}


@pytest.mark.parametrize("table", ["session_entries", "session_events"])
def test_a_changed_capture_is_found(file: Path, table: str) -> None:
    """A time, a name, a row less: the digest or the count of its capture tells."""
    for edit in (
        f"UPDATE {table} SET recorded_at = recorded_at + 1 WHERE run_seq = 2",  # noqa: S608
        f"DELETE FROM {table} WHERE run_id = 'run-2' AND run_seq = 5",  # noqa: S608
    ):
        with closing(connect(str(file))) as connection:
            connection.execute(edit)
        found = verify_file(file, live_directory=None, is_quick=False).violations
        assert {"journalDigest"} <= {violation.code for violation in found}, edit
