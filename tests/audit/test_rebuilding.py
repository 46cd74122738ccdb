"""A file's log gives its rows again, or every row that differs is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_workflows.audit.rebuilding import rebuild_file
from pi_workflows.base.errors import Corrupt
from pi_workflows.store.driver import connect

RUN = {"run_id": "run-1"}


def change(file: Path, statement: str) -> None:
    """Let a hand change the file behind our back."""
    connection = connect(str(file))
    connection.execute(statement)
    connection.close()


def test_an_honest_file(stopped: Path) -> None:
    """Every event is replayed, every row is the same, and nothing is left beside the file."""
    told: list[int] = []
    sizes: list[int] = []
    found = rebuild_file(stopped, live_directory=None, begun=sizes.append, progress=told.append)
    assert found.is_identical
    assert found.differences == ()
    assert [found.event_count] == sizes == told
    assert [path.name for path in stopped.parent.iterdir()] == [stopped.name]


def test_a_column_that_differs(stopped: Path) -> None:
    """The row is named by its key, the difference by its columns."""
    change(stopped, "UPDATE runs SET title = 'forged', updated_at = 1")
    found = rebuild_file(stopped, live_directory=None)
    assert not found.is_identical
    (difference,) = found.differences
    assert (difference.table, difference.key) == ("runs", RUN)
    assert difference.columns == ("title", "updated_at")


def test_a_row_that_is_missing(stopped: Path) -> None:
    """A row that the log gives and the file lacks differs in every column."""
    change(stopped, "DELETE FROM run_steps WHERE step_index = 1")
    (difference,) = rebuild_file(stopped, live_directory=None).differences
    assert (difference.left, difference.key) == (None, {**RUN, "step_index": 1})
    assert difference.columns == ("run_id", "step_index", "attempt_id")


def test_a_row_that_the_log_does_not_give(stopped: Path) -> None:
    """A row that somebody added differs in every column; an expression is called by its name."""
    change(
        stopped,
        "INSERT INTO attempt_active_intervals SELECT attempt_id, 2, started_at, observed_at,"
        " ended_at, elapsed_ms FROM attempt_active_intervals LIMIT 1",
    )
    (difference,) = rebuild_file(stopped, live_directory=None).differences
    assert difference.right is None
    assert list(difference.key) == ["attempt_id", "interval_number"]
    assert {"observed_at", "elapsed_ms"} < set(difference.columns)


def test_a_log_that_cannot_be_replayed(stopped: Path) -> None:
    """An event that leads nowhere is damage, not a difference."""
    change(stopped, "UPDATE events SET event_type = 'run.unheard' WHERE event_seq = 2")
    with pytest.raises(Corrupt):
        rebuild_file(stopped, live_directory=None)
