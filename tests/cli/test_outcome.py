"""Which exit code a followed run has, by where it stands."""

from __future__ import annotations

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.cli.outcome import outcome_of
from tests.cli.views import run_view


@pytest.mark.parametrize(
    ("status", "queue", "controls", "outcome"),
    [
        ("completed", "done", [], ("completed", 0, True)),
        ("failed", "failed", [], ("failed", 1, True)),
        ("cancelled", "cancelled", [], ("cancelled", 6, True)),
        ("timed_out", "failed", [], ("timed_out", 7, True)),
        ("waiting", "parked", ["answer"], ("waiting", 10, False)),
        ("paused", "parked", ["resume"], ("paused", 11, False)),
        ("ambiguous", "parked", ["review"], ("parked", 12, False)),
        ("queued", "parked", ["resume", "cancel"], ("parked", 12, False)),
        ("queued", "parked", ["cancel"], None),
        ("queued", "queued", ["cancel"], None),
        ("running", "running", ["pause"], None),
    ],
)
def test_outcome(
    status: str, queue: str, controls: list[Json], outcome: tuple[str, int, bool] | None
) -> None:
    """A run that ended or stands still has a code; one that goes on by itself has none.

    An answer that was accepted leaves the run parked, but nothing offers to resume it: it goes on.
    """
    found = outcome_of(run_view({"one": {}}, status=status, queue_status=queue, controls=controls))
    assert (found and (found.name, found.exit_code, found.is_end)) == outcome
