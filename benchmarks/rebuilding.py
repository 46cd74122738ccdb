"""`rebuild`: events that are projected from the log into an empty database, a second.

Every value is copied and checked, every event is appended and projected through the server's own
projectors, foreign keys on; the comparison that follows in `audit rebuild` is not part of it.
"""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Final

from benchmarks.figure import ROUNDS, SYSTEM, Figure, seconds
from benchmarks.setting import Setting
from pi_workflows.audit.compose import PROJECTORS, scratch_beside
from pi_workflows.kernel.rebuild import rebuild
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.scratch import Scratch
from pi_workflows.store.snapshot import Snapshot

DOMAIN_ONLY: Final = "rebuild, domain only"


def domain_only(setting: Setting) -> list[Figure]:
    """Measure a rebuild whose view has one row a run, and no deltas."""
    file = setting.small_rows
    replayed: list[int] = []
    rates: list[float] = []
    shares: list[float] = []
    with open_inactive(file, live_directory=None) as source:
        for _ in range(ROUNDS):
            commits = setting.anchor.round()
            with scratch_beside(file) as target:
                work = partial(_rebuild, source, target, replayed)
                rates.append(1 / seconds(work) * replayed[-1])
            shares.append(rates[-1] / commits)
    n = replayed[-1]
    return [
        Figure(SYSTEM, DOMAIN_ONLY, median(rates), "events/s", durable=False, n=n),
        Figure(SYSTEM, DOMAIN_ONLY, median(shares), "of raw commits", durable=False, n=n),
    ]


def _rebuild(source: Snapshot, target: Scratch, replayed: list[int]) -> None:
    """Replay a log, and keep how many events it has."""
    replayed.append(rebuild(source, target, PROJECTORS))
