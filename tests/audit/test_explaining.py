"""Telling a run's story from a file, also from one that is damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_workflows.audit.explaining import explain_file
from pi_workflows.base.errors import Corrupt, NotFound
from pi_workflows.base.sql import Statement
from pi_workflows.store.driver import connect
from pi_workflows.store.inactive import open_inactive
from tests.views.test_story_machine import parts_ms

_RUNS = Statement("runs", "SELECT run_id FROM runs ORDER BY run_id")


def test_every_run_of_a_backup_explains_itself(every_kind: Path) -> None:
    """Runs of every kind have a story that begins with who asked, and whose times add up."""
    with open_inactive(every_kind, live_directory=None) as read:
        run_ids = list(read.each(_run_id, _RUNS))
    assert len(run_ids) >= 12
    for run_id in run_ids:
        told = explain_file(every_kind, live_directory=None, run_id=run_id)
        assert told.sentences[0].type == "run.queued"
        assert parts_ms(told.totals) == told.totals.wall_ms
        if told.status in ("completed", "failed", "timed_out", "cancelled"):
            assert f"run.{told.status}" in {each.type for each in told.sentences}


def test_a_run_that_is_not_in_the_file(stopped: Path) -> None:
    """It is told as missing."""
    with pytest.raises(NotFound):
        explain_file(stopped, live_directory=None, run_id="run-0")


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM blobs WHERE blob_hash IN (SELECT output_hash FROM node_attempts)",
        "DELETE FROM events WHERE event_type = 'attempt.started'",
        "UPDATE events SET event_type = 'attempt.vanished' WHERE event_type = 'attempt.settled'",
        "UPDATE events SET payload_hash = (SELECT input_hash FROM runs)",
    ],
)
def test_a_damaged_story_is_refused(stopped: Path, damage: str) -> None:
    """A value or an event that is missing, unknown or another one is damage, told in one line."""
    connection = connect(str(stopped))
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(damage)
    connection.close()
    with pytest.raises(Corrupt):
        explain_file(stopped, live_directory=None, run_id="run-1")


def _run_id(value: str) -> str:
    """Return the only column of a row."""
    return value
