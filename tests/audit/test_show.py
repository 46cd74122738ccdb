"""The log is the truth: a backup of two hundred runs, looked at from every side."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from pi_workflows.audit.rebuilding import rebuild_file
from pi_workflows.audit.time_travel import view_at
from pi_workflows.audit.verification import verify_file
from pi_workflows.base.canonical import Json, decode
from pi_workflows.domain.fact import Stored
from pi_workflows.kernel.rebuild import Replay
from pi_workflows.store.backup import backup
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.scratch import create_scratch
from pi_workflows.store.snapshot import Snapshot
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.run_view import run_view
from projections import route
from tests.audit.population import SEED, Population, population

RUNS: Final = 200
MOMENTS: Final = 200
# Of this share of the commits the view is taken, which is most of what a look costs.
_SHARE: Final = 0.25
# Through the command's own door, which replays a run's tree from its beginning each time.
ALONE: Final = 10
# What depends on claims and processes that lived when somebody looked.
_OF_PROCESSES: Final = ("display", "live", "possiblyInterrupted")


@dataclass
class Watcher:
    """Looks at a run right after each command that touches it.

    Attributes:
        chance: Which commits.
        seen: The run and its view, by the number of each event.
    """

    chance: random.Random
    seen: dict[int, tuple[str, Json]] = field(default_factory=dict[int, tuple[str, Json]])

    def look(self, made: Population, events: Sequence[tuple[int, Stored]]) -> None:
        """Record the views of the runs that some of the commits touched.

        Of two commands that one commit holds, nobody ever saw what was between them.
        """
        if self.chance.random() > _SHARE:
            return
        last = events[-1][1].fact.command
        with made.store.snapshot() as read:
            views: dict[str, Json] = {}
            for number, event in events:
                view = event.fact.view
                if view is None or event.fact.command != last:
                    continue
                if view.run_id not in views:
                    views[view.run_id] = shown(read, view.run_id, made.bench.clock.now_ms())
                self.seen[number] = (view.run_id, views[view.run_id])


def shown(read: Snapshot, run_id: str, now_ms: int = 0) -> Json:
    """Return the view of a run, without what depends on living processes."""
    return lasting(run_view(read, run_id, ProcessFacts(now_ms)).content)


def lasting(content: bytes) -> Json:
    """Return what a view says without what depends on living processes."""
    document = decode(content)
    assert isinstance(document, dict)
    return {name: value for name, value in document.items() if name not in _OF_PROCESSES}


@pytest.mark.slow
def test_a_backup_tells_what_was_seen_live(tmp_path: Path) -> None:
    """It verifies clean, rebuilds identical, and shows runs at any event as they were seen then."""
    chance = random.Random(SEED)  # noqa: S311 - which events, no secret
    watcher = Watcher(chance)
    made = population(tmp_path, RUNS, after=watcher.look)
    file = tmp_path / "backup.sqlite"
    backup(made.store, file)
    made.close()

    assert verify_file(file, live_directory=None, is_quick=False).violations == ()
    assert rebuild_file(file, live_directory=None).differences == ()

    numbers = sorted(chance.sample(sorted(watcher.seen), MOMENTS))
    with open_inactive(file, live_directory=None) as source, create_scratch(None) as scratch:
        replay = Replay(source, scratch, route)
        for number in numbers:
            replay.advance(number)
            run_id, seen = watcher.seen[number]
            with scratch.snapshot() as read:
                assert shown(read, run_id) == seen, (number, run_id)
    for number in chance.sample(numbers, ALONE):
        run_id, seen = watcher.seen[number]
        with view_at(file, live_directory=None, event_seq=number) as moment:
            assert (moment.run_id, lasting(moment.content)) == (run_id, seen), number
