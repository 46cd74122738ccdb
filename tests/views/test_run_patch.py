"""A view at one revision and the patches that follow are the view at a later revision."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pi_workflows.base import canonical
from pi_workflows.domain.fact import Stored
from pi_workflows.store.snapshot import Snapshot
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.run_patch import run_patch
from pi_workflows.views.run_view import run_view
from tests.audit.population import Population, population
from tests.views.patching import Reader, comparable

SAMPLES = 8


class Watch:
    """Remembers every view of every run and holds the patches to the newest one."""

    def __init__(self) -> None:
        self.views: dict[str, dict[int, Any]] = {}
        self.checked = 0
        self._chance = random.Random(4)  # noqa: S311 - which revisions, not secrets

    def after(self, made: Population, events: Sequence[tuple[int, Stored]]) -> None:
        """Check the runs that a commit changed."""
        changed = {event.fact.view.run_id for _, event in events if event.fact.view is not None}
        with made.store.snapshot() as read:
            for run_id in sorted(changed):
                self._check(read, run_id, ProcessFacts(made.bench.clock.now_ms()))

    def _check(self, read: Snapshot, run_id: str, process: ProcessFacts) -> None:
        now = view_of(read, run_id, process)
        known = self.views.setdefault(run_id, {})
        for revision in self._chance.sample(sorted(known), min(SAMPLES, len(known))):
            patch = run_patch(read, run_id, revision, process)
            assert patch is not None
            reader = Reader(known[revision])
            reader.take(decoded(patch.content))
            trace_from = max(now["tracePage"]["start"], reader.view["tracePage"]["start"])
            assert comparable(reader.view, reader.stale, trace_from) == comparable(
                now, reader.stale, trace_from
            )
            self.checked += 1
        known[now["revision"]] = now


def decoded(content: bytes) -> Any:
    """Return canonical bytes as a document."""
    return canonical.decode(content, depth_max=128)


def view_of(read: Snapshot, run_id: str, process: ProcessFacts) -> Any:
    """Return the view of a run as a document."""
    return decoded(run_view(read, run_id, process).content)


def test_patches_lead_to_the_view(tmp_path: Path) -> None:
    """From eight earlier revisions of each state, whatever was done to runs of every kind."""
    watch = Watch()
    made = population(tmp_path, 24, after=watch.after)
    made.close()
    assert watch.checked > 500, watch.checked
