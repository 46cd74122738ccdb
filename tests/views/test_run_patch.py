"""A view at one revision and the patches that follow are the view at a later revision."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import PATCH_BYTES_MAX
from pi_workflows.base.sql import Statement
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.fact import Stored
from pi_workflows.domain.run.control import PauseRun, ResumeRun
from pi_workflows.store.snapshot import Snapshot
from pi_workflows.views.facts import ProcessFacts, run_facts
from pi_workflows.views.run_patch import RunPatch, run_patch
from pi_workflows.views.run_view import run_view
from tests.audit.population import Population, population
from tests.kernel.harness import Harness, begin, definition, end
from tests.views.following import Follower, decoded
from tests.views.patching import Reader, differences
from tests.views.reading import Document, line, view

SAMPLES = 8


class Watch:
    """Remembers every view of every run and holds the patches to the newest one."""

    def __init__(self) -> None:
        self.views: dict[str, dict[int, bytes]] = {}
        self.checked = 0
        self._chance = random.Random(4)  # noqa: S311 - which revisions, not secrets

    def after(self, made: Population, events: Sequence[tuple[int, Stored]]) -> None:
        """Check the runs that a commit changed."""
        changed = {event.fact.view.run_id for _, event in events if event.fact.view is not None}
        with made.store.snapshot() as read:
            for run_id in sorted(changed):
                self._check(read, run_id, ProcessFacts(made.bench.clock.now_ms()))

    def _check(self, read: Snapshot, run_id: str, process: ProcessFacts) -> None:
        content = run_view(read, run_id, process).content
        now = decoded(content)
        known = self.views.setdefault(run_id, {})
        for revision in self._chance.sample(sorted(known), min(SAMPLES, len(known))):
            patch = run_patch(read, run_id, revision, process)
            assert patch is not None
            reader = Reader(decoded(known[revision]))
            reader.take(decoded(patch.content))
            assert differences(reader.view, now, reader.stale) == []
            self.checked += 1
        known[now["revision"]] = content


def test_patches_lead_to_the_view(tmp_path: Path) -> None:
    """From eight earlier revisions of each state, whatever was done to runs of every kind."""
    watch = Watch()
    made = population(tmp_path, 24, after=watch.after)
    made.close()
    assert watch.checked > 500, watch.checked


def test_no_frame_is_over_its_bound(bench: Harness) -> None:
    """What became too much for one frame is a snapshot again; from later on it is a patch."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    data, attempt_id = Blob.json({"label": "x"}), begin("one").attempt_id
    updates = [RecordUpdate("run-1", attempt_id, "progress", "files", data) for _ in range(70)]
    frames: list[RunPatch | None] = []
    for _ in range(40):
        bench.do(*updates, permit=permit)
        with bench.store.snapshot() as read:
            frames.append(run_patch(read, "run-1", 1, ProcessFacts(bench.clock.now_ms())))
    sizes = [len(frame.content) for frame in frames if frame is not None]
    assert frames == [*frames[: len(sizes)], *[None] * (len(frames) - len(sizes))]
    assert PATCH_BYTES_MAX - 30_000 < sizes[-1] <= PATCH_BYTES_MAX
    with bench.store.snapshot() as read:
        revision = run_facts(read, "run-1").revision
        assert run_patch(read, "run-1", revision - 3, ProcessFacts(bench.clock.now_ms()))


def test_the_window_of_a_large_definition_is_asked_for_again(bench: Harness) -> None:
    """Both readers know that their window lacks the node; a fresh view has it in the middle."""
    names = [f"node-{index:04}" for index in range(400)]
    ways: Document = {"near": names[1], "far": names[200]}
    edges: list[Document] = [{"from": names[0], "on": "$", "cases": ways}, *line(names)[1:]]
    nodes: dict[str, dict[str, Json]] = {name: {"summary": "s" * 400} for name in names}
    permit = bench.launch(workflow=definition(nodes, edges))
    bench.do(begin(names[0]), permit=permit)
    follower = Follower(canonical.encode(view(bench)))
    bench.do(end(names[0], "far"), begin(names[200]), permit=permit)
    with bench.store.snapshot() as read:
        process = ProcessFacts(bench.clock.now_ms())
        patch = run_patch(read, "run-1", follower.revision, process)
    assert patch is not None
    follower.take(patch.content)
    now = decoded(canonical.encode(view(bench)))
    follower.hold(now)
    assert "definition" in follower.mirror.stale
    assert names[200] in now["workflow"]["nodes"]
    follower.mirror.take_view(now)
    assert follower.mirror.stale == frozenset()


def test_a_missing_patch_is_a_snapshot(bench: Harness) -> None:
    """Over a revision that is not there any more nobody is led."""
    bench.do(bench.start())
    for command in (PauseRun("run-1"), ResumeRun("run-1"), PauseRun("run-1")):
        bench.do(command)
    gone = Statement(
        "gone",
        "DELETE FROM viewer_deltas WHERE presentation_revision = 3",
    )
    process = ProcessFacts(bench.clock.now_ms())
    found: list[RunPatch | None] = []
    with suppress(_Undone), bench.store.transaction() as tx:
        tx.projection.write_any(gone)
        found = [run_patch(tx.read, "run-1", revision, process) for revision in range(5)]
        raise _Undone
    assert [patch is None for patch in found] == [True, True, True, False, False]


class _Undone(Exception):
    """Leaves nothing of a transaction."""
