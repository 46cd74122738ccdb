"""`durable commands`: clients that command over the socket, each one command at a time."""

from __future__ import annotations

from functools import partial
from statistics import median
from typing import Final

from benchmarks.commanding import commanded, rate_of
from benchmarks.figure import ROUNDS, SYSTEM, Figure, quantile
from benchmarks.setting import Setting

CLIENTS: Final = (1, 8, 32)
LATENCY: Final = "durable command p99, 1 client"
# Of one round, all clients together, at scale 1.
_COMMANDS: Final = 640
_PERCENT: Final = 99


def metric(clients: int) -> str:
    """Return the name of how many commands so many clients get done."""
    return f"durable commands, {clients} client{'s' if clients > 1 else ''}"


def measure(clients: int) -> partial[list[Figure]]:
    """Return what measures so many clients."""
    return partial(_throughput, clients)


def _throughput(clients: int, setting: Setting) -> list[Figure]:
    """Measure how many commands a second are answered."""
    run_ids = setting.service.waiting_runs(clients)
    count = setting.even(_COMMANDS // clients)
    rates: list[float] = []
    shares: list[float] = []
    for _ in range(ROUNDS):
        commits = setting.anchor.round()
        rates.append(rate_of(commanded(setting.service, run_ids, count)))
        shares.append(rates[-1] / commits)
    name, n = metric(clients), count * clients
    return [
        Figure(SYSTEM, name, median(rates), "commands/s", durable=True, n=n),
        Figure(SYSTEM, name, median(shares), "of raw commits", durable=True, n=n),
    ]


def latency(setting: Setting) -> list[Figure]:
    """Measure how long one client waits for its reply, at worst but one in a hundred."""
    run_ids = setting.service.waiting_runs(1)
    count = setting.even(_COMMANDS)
    found: list[float] = []
    for _ in range(ROUNDS):
        setting.anchor.round()
        (alone,) = commanded(setting.service, run_ids, count)
        found.append(quantile(alone.latencies_ms(), _PERCENT))
    return [Figure(SYSTEM, LATENCY, median(found), "ms", durable=True, n=count)]
