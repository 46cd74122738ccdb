"""`view push`: how soon a subscriber has what a command changed, and what that costs the others.

A command's patch is pushed from the moment of its reply, which is durable, until the subscriber has
the whole frame; one that is there before the reply took no time. The server, the subscribers
and those who command are three processes, every client has its own connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import median
from typing import Final

from benchmarks.commanding import Commander, commanded, rate_of
from benchmarks.figure import ROUNDS, SYSTEM, Figure, quantile
from benchmarks.setting import Setting
from benchmarks.subscribers import Frame, subscribers

SUBSCRIBERS: Final = (1, 10, 100)
OTHERS: Final = "durable command p99 with 100 subscribers, of none"
SATURATED: Final = "durable commands with 100 subscribers, of none, 8 clients"
_RATE: Final = 100.0
# Of one round, at scale 1: two seconds at that rate.
_COMMANDS: Final = 200
_SATURATING: Final = 160
_CLIENTS: Final = 8
_MANY: Final = 100
_MEDIAN: Final = 50
_PERCENT: Final = 99
_NS_PER_MS: Final = 1_000_000
# Below this nobody can tell: the clock is read in two processes.
_RESOLUTION_MS: Final = 0.001


def metric(count: int) -> str:
    """Return the name of how soon so many subscribers have a patch."""
    return f"view push p50 / p99, {count} subscriber{'s' if count > 1 else ''}"


def measure(count: int) -> partial[list[Figure]]:
    """Return what measures so many subscribers."""
    return partial(_push, count)


def _push(count: int, setting: Setting) -> list[Figure]:
    """Measure how soon each of the subscribers of one run has each patch."""
    run_ids = setting.service.waiting_runs(1)
    commands = setting.even(_COMMANDS)
    middles: list[float] = []
    ends: list[float] = []
    for _ in range(ROUNDS):
        setting.anchor.round()
        with subscribers(setting.service, count, run_ids) as watching:
            (alone,) = commanded(setting.service, run_ids, commands, rate=_RATE)
            frames = watching.frames([alone.last_revision])
        taken = [each for got in frames for each in _delays_ms(alone, got)]
        middles.append(quantile(taken, _MEDIAN))
        ends.append(quantile(taken, _PERCENT))
    name, n = metric(count), commands * count
    return [
        Figure(SYSTEM, name, median(middles), "ms p50", durable=False, n=n),
        Figure(SYSTEM, name, median(ends), "ms p99", durable=False, n=n),
    ]


def _delays_ms(commander: Commander, frames: Sequence[Frame]) -> Iterator[float]:
    """Yield how long after each reply a subscriber had its patch, alone or with later ones."""
    arriving = iter(frames)
    frame = next(arriving)
    for number, replied_ns in enumerate(commander.replied_ns, commander.first_revision + 1):
        while frame.revision < number:
            frame = next(arriving)
        yield max((frame.at_ns - replied_ns) / _NS_PER_MS, _RESOLUTION_MS)


def others(setting: Setting) -> list[Figure]:
    """Measure what another client waits for its replies while many watch a run that changes."""
    watched, own = setting.service.waiting_runs(2)
    commands = setting.even(_COMMANDS)
    shares: list[float] = []
    for _ in range(ROUNDS):
        setting.anchor.round()
        found: list[float] = []
        for count in (0, _MANY):
            with subscribers(setting.service, count, [watched]):
                _, other = commanded(setting.service, [watched, own], commands, rate=_RATE)
            found.append(quantile(other.latencies_ms(), _PERCENT))
        shares.append(found[1] / found[0])
    return [Figure(SYSTEM, OTHERS, median(shares), "of none", durable=True, n=commands)]


def saturated(setting: Setting) -> list[Figure]:
    """Measure what many subscribers cost clients that command as fast as they can.

    Each watches the run of one of the clients. They get fewer frames than there are commands.
    """
    run_ids = setting.service.waiting_runs(_CLIENTS)
    commands = setting.even(_SATURATING)
    shares: list[float] = []
    counts: list[float] = []
    for _ in range(ROUNDS):
        setting.anchor.round()
        alone = rate_of(commanded(setting.service, run_ids, commands))
        with subscribers(setting.service, _MANY, run_ids) as watching:
            beside = commanded(setting.service, run_ids, commands)
            got = watching.frames([each.last_revision for each in beside])
        shares.append(rate_of(beside) / alone)
        counts.append(sum(map(len, got)) / (_MANY * commands))
    n = commands * _CLIENTS
    return [
        Figure(SYSTEM, SATURATED, median(shares), "of none", durable=True, n=n),
        Figure(SYSTEM, SATURATED, median(counts), "frames a command", durable=True, n=n),
    ]
