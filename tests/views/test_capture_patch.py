"""A view with a session and the patches that follow are the view at a later revision."""

from __future__ import annotations

import copy
import random
from pathlib import Path
from typing import Any

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import PATCH_BYTES_MAX
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.session.capture import RecordEntries, RecordEvents
from pi_workflows.domain.session.records import NewEntry, NewEvent
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.mirror import RunMirror
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.run_patch import run_patch
from tests.kernel.harness import Harness
from tests.kernel.rebuilt import assert_rebuilds
from tests.kernel.recording import bind, complete, conversation, entries, event, events, failed
from tests.views.patching import Reader, comparable
from tests.views.reading import view

SAMPLES = 3


class Followed:
    """A run whose every view is remembered, and held to the patches that lead to it."""

    def __init__(self, bench: Harness, seed: int) -> None:
        self.bench = bench
        self.chance = random.Random(seed)  # noqa: S311 - which commands, not secrets
        self.views: dict[int, Any] = {}
        self.targets: set[tuple[str, str]] = set()
        self.stored: set[str] = set()
        self.checked = 0
        self._records = list(conversation(self.chance, 2_000))
        self._sent = [0, 0]
        self._captures = 0
        self._key: str | None = None

    def step(self) -> None:
        """Let the recorder, or a person, do one thing."""
        chance = self.chance
        if self._key is None:
            self._captures += 1
            self._key, self._sent = f"key-{self._captures}", [0, 0]
            self.bench.do(bind(key=self._key))
            return
        match chance.choices(("events", "entries", "end", "person"), (8, 4, 1, 1))[0]:
            case "events":
                first = self._sent[1]
                batch = self._records[first : first + chance.choice((1, 3, 20, 200))]
                self.bench.do(RecordEvents("run-1", self._key, tuple(batch)))
                self._sent[1] += len(batch)
            case "entries":
                first, count = self._sent[0] + 1, chance.choice((1, 2, 30))
                text = "x" * chance.choice((1, 1, 400))
                self.bench.do(entries(range(first, first + count), key=self._key, text=text))
                self._sent[0] += count
            case "end":
                end = failed(key=self._key)
                if chance.random() < 0.5 and self._sent[1] == 0:
                    end = complete(self._sent[0], 0, key=self._key)
                self.bench.do(end)
                self._key = None
            case _:
                paused = self.bench.dump("runs")[0][15] == 1
                self.bench.do(ResumeRun("run-1") if paused else PauseRun("run-1"))
        self.bench.clock.advance_ms(1)

    def check(self) -> None:
        """Hold what some earlier views become to the view of now."""
        now = view(self.bench)
        revision = now["revision"]
        assert isinstance(revision, int)
        chosen = self.chance.sample(sorted(self.views), min(SAMPLES, len(self.views)))
        for known in {*chosen, revision - 1} & self.views.keys():
            with self.bench.store.snapshot() as read:
                process = ProcessFacts(self.bench.clock.now_ms())
                patch = run_patch(read, "run-1", known, process)
            if patch is None:
                # So much was added that a snapshot is shorter.
                continue
            document: Any = canonical.decode(patch.content, depth_max=128)
            reader = Reader(copy.deepcopy(self.views[known]))
            reader.take(document)
            left, right = comparable(reader, now)
            assert left == right
            self._mirrored(known, document, reader)
            self.targets |= {(d["targetType"], d["targetKey"]) for d in document["deltas"]}
            self.checked += 1
        self.views[revision] = now

    def _mirrored(self, known: int, patch: Any, reader: Reader) -> None:
        """Hold the client's own mirror to the same patch."""
        mirror = RunMirror("run-1")
        mirror.take_view(self.views[known])
        taken = mirror.take(
            Event(
                subscription_id="s",
                event=EventKind.RUN_PATCH,
                payload=patch,
                revision=patch["toRevision"],
                run_id="run-1",
            )
        )
        assert mirror.revision == patch["toRevision"], taken
        seen: Any = mirror.view
        for member in ("binding", "capture", "integrity"):
            assert seen["session"][member] == reader.view["session"][member]
        for page in ("entryPage", "eventPage"):
            assert seen["session"][page]["total"] == reader.view["session"][page]["total"]


@pytest.mark.parametrize("seed", range(2))
def test_patches_lead_to_the_view(tmp_path: Path, seed: int) -> None:
    """From earlier revisions of each state, whatever was captured and ended meanwhile."""
    bench = Harness(tmp_path / "state")
    bench.do(bench.start())
    followed = Followed(bench, seed)
    followed.check()
    for _ in range(45):
        followed.step()
        followed.check()
    bench.do(CancelRun("run-1"))
    followed.check()
    assert followed.checked > 90
    assert followed.targets >= {
        ("conversation", "binding"),
        ("conversation", "capture"),
        ("conversation", "integrity"),
        ("conversation", "entries:tail"),
        ("timeline", "session:tail"),
        ("timeline", "session:reload"),
    }
    assert_rebuilds(bench.store)
    bench.store.close()


def deltas(bench: Harness) -> list[str]:
    """Return the targets that the newest revision changed."""
    rows = bench.dump("viewer_deltas")
    newest = max(row[1] for row in rows if isinstance(row[1], int))
    return [f"{row[3]}/{row[4]}" for row in rows if row[1] == newest]


def test_a_batch_over_a_boundary_is_asked_for_again(tmp_path: Path) -> None:
    """So is one whose items are too many bytes; any other is put at the end of the page."""
    bench = Harness(tmp_path / "state")
    bench.do(bench.start())
    bench.do(bind())
    tail = ["conversation/capture", "timeline/session:tail"]
    reload = ["conversation/capture", "timeline/session:reload"]
    for numbers, expected in (
        (range(1, 201), tail),
        (range(201, 256), tail),
        (range(256, 257), reload),
        (range(257, 258), tail),
        (range(258, 512), tail),
        (range(512, 520), reload),
        (range(520, 521), tail),
    ):
        bench.do(events(numbers))
        assert deltas(bench) == expected, numbers
    for numbers, expected in ((range(521, 561), tail), (range(561, 641), reload)):
        bench.do(RecordEvents("run-1", None, tuple(map(wide, numbers))))
        assert deltas(bench) == expected
    bench.store.close()


def wide(seq: int) -> NewEvent:
    """Return an event whose item takes a kilobyte."""
    name = "x" * 256
    members: dict[str, Json] = {"turnIndex": 0, "messageId": name, "toolCallIds": [name]}
    return event(seq, "turn_finished", members, message=name, tool=name)


def test_a_flood_is_answered_by_a_snapshot(tmp_path: Path) -> None:
    """Who is far behind gets no patch, and nobody reads more for it than it may have."""
    bench = Harness(tmp_path / "state")
    bench.do(bench.start())
    bench.do(bind())
    for first in range(1, 5_000, 250):
        batch = tuple(
            NewEntry.of(seq, {"id": f"e{seq}", "text": "x" * 500}, "entries")
            for seq in range(first, first + 250)
        )
        bench.do(RecordEntries("run-1", None, batch))
    now = bench.dump("viewer_runs")[0][1]
    assert isinstance(now, int)
    with bench.store.snapshot() as read:
        process = ProcessFacts(bench.clock.now_ms())
        assert run_patch(read, "run-1", 1, process) is None
        near = run_patch(read, "run-1", now - 1, process)
        assert near is not None
        assert len(near.content) <= PATCH_BYTES_MAX
    bench.store.close()
