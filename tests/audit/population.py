"""Databases of many runs of every kind, made by the kernel itself and alike for the same seed."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, cycle
from pathlib import Path
from typing import Final, TypeAlias

from pi_workflows.domain.fact import Stored
from pi_workflows.store.database import Store
from pi_workflows.store.log import high_water_mark
from pi_workflows.store.opening import FILE_NAME
from tests.audit.kinds import ALL_KINDS, KINDS, MORE_KINDS
from tests.audit.lives import Life, Steps
from tests.kernel.harness import Harness
from tests.kernel.recovery import recover

SEED: Final = 20_260
RUNS_MIN: Final = 15
"""Every kind once, with the runs that they restart."""

After: TypeAlias = "Callable[[Population, Sequence[tuple[int, Stored]]], None]"

# Lives that go on side by side, so that their events lie mixed in the log.
_ABREAST: Final = 8
_STEP_MS_MAX: Final = 40
# In a large population every so many lives have values that fill overflow pages.
_BIG_EVERY: Final = 12
_BIG_BYTES: Final = 60_000
_SMALL_BYTES: Final = 40
_ANCESTORS: Final = {"sourceChanged": 2}


@dataclass
class Population:
    """A database of runs, still open.

    Attributes:
        bench: The database.
        lives: One a run, ancestors included.
        event_count: How many events it has.
        begun_count: How many lives were begun, ancestors not counted.
    """

    bench: Harness
    after: After | None = None
    lives: list[Life] = field(default_factory=list[Life])
    event_count: int = 0
    begun_count: int = 0

    @property
    def kinds(self) -> dict[str, str]:
        """What each run is an example of."""
        return {life.run_id: life.kind for life in self.lives}

    @property
    def file(self) -> Path:
        """The database's file; complete after `close`."""
        return self.bench.directory / FILE_NAME

    @property
    def store(self) -> Store:
        """The open database."""
        return self.bench.store

    def close(self) -> Path:
        """Stop in order, and return the file."""
        self.bench.store.close()
        return self.file

    def told(self, events: Sequence[Stored]) -> None:
        """Take in the events of one commit, which have the next numbers."""
        first = self.event_count + 1
        self.event_count += len(events)
        if self.after is not None:
            self.after(self, list(enumerate(events, first)))


def population(
    directory: Path, runs: int = RUNS_MIN, *, seed: int = SEED, after: After | None = None
) -> Population:
    """Make a database of runs of every kind.

    Args:
        directory: Where the state directory is made.
        runs: How many; 15 hold every kind and have small values only.
        seed: Of everything that varies.
        after: Called after each commit with what there is, the events that it appended and their
            numbers.

    Returns:
        The open database.
    """
    assert runs >= RUNS_MIN, runs
    chance = random.Random(seed)  # noqa: S311 - which values, not secrets
    made = Population(Harness(directory / "state"), after)
    begun = [_begun(made, chance, kind) for kind in _kinds(runs)]
    _lose_server(made, begun[0])
    waiting = deque(begun)
    active: list[_Begun] = []
    while waiting or active:
        while waiting and len(active) < _ABREAST:
            active.append(waiting.popleft())
        _step(made, chance, active)
    made.lives = [life for each in begun for life in each.life.family()]
    with made.store.snapshot() as read:
        assert high_water_mark(read) == made.event_count
    return made


@dataclass
class _Begun:
    """A life under way.

    Attributes:
        life: The run.
        steps: What is still to come.
        due_ms: Wall time before which nothing is due.
    """

    life: Life
    steps: Steps
    due_ms: int = 0


def _kinds(runs: int) -> Iterator[str]:
    """Yield the kinds of the lives that together make this many runs."""
    left = runs
    for kind in chain(KINDS, cycle((*MORE_KINDS, *KINDS, *["walked"] * len(KINDS)))):
        size = 1 + _ANCESTORS.get(kind, 0)
        if size <= left:
            left -= size
            yield kind
        if not left:
            return


def _begun(made: Population, chance: random.Random, kind: str) -> _Begun:
    """Return a life of a kind, of which nothing has happened yet."""
    made.begun_count += 1
    is_big = made.begun_count > RUNS_MIN and made.begun_count % _BIG_EVERY == 0
    value_bytes = _BIG_BYTES if is_big else _SMALL_BYTES
    life = Life(made.bench, kind, chance, made.told, value_bytes)
    return _Begun(life, ALL_KINDS[kind](life))


def _lose_server(made: Population, first: _Begun) -> None:
    """Let the first run's runner begin, and a second server find it lost."""
    for _ in range(2):
        next(first.steps)
    made.bench.store.close()
    for answer in recover(made.bench):
        made.told(answer.events)
    first.life.server_lost()


def _step(made: Population, chance: random.Random, active: list[_Begun]) -> None:
    """Let one of the lives go on, or time until one of them can."""
    clock = made.bench.clock
    clock.advance_ms(chance.randrange(_STEP_MS_MAX))
    due = [each for each in active if each.due_ms <= clock.now_ms()]
    if not due:
        clock.advance_ms(min(each.due_ms for each in active) - clock.now_ms())
        return
    chosen = chance.choice(due)
    try:
        chosen.due_ms = next(chosen.steps)
    except StopIteration:
        active.remove(chosen)
