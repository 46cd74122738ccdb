"""A measured figure, as a line for programs and as a row for people."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json

SYSTEM: Final = "pi-workflows"
ROUNDS: Final = 5
"""Rounds of one measurement, of which the median counts: a shared machine is noisy."""
_NS_PER_S: Final = 1_000_000_000
_COLUMNS: Final = ("system", "metric", "value", "unit", "n")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result.

    Attributes:
        system: What was measured: `pi-workflows`, or the raw library that it is laid beside.
        metric: The fixed name of the metric.
        value: The median of the rounds.
        unit: What the value counts.
        durable: Whether each operation was on the disk before it counted.
        n: Operations of one round: commits, events, or bytes.
    """

    system: str
    metric: str
    value: float
    unit: str
    durable: bool
    n: int

    def line(self) -> str:
        """Return the figure as one line of JSON."""
        members: dict[str, Json] = asdict(self)
        return canonical.encode(members).decode()


def seconds(operation: Callable[[], object]) -> float:
    """Do something once and return how long it took."""
    begun = time.perf_counter_ns()
    operation()
    return (time.perf_counter_ns() - begun) / _NS_PER_S


def quantile(values: Sequence[float], percent: int) -> float:
    """Return the value that so many of a hundred do not exceed."""
    ordered = sorted(values)
    return ordered[(len(ordered) * percent - 1) // 100]


def table(figures: Sequence[Figure]) -> str:
    """Return figures as rows under one another, ending in a line break."""
    rows = [_COLUMNS]
    rows += [
        (each.system, each.metric, f"{each.value:,.4g}", each.unit, f"{each.n:,}")
        for each in figures
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "".join(f"{line}\n" for line in lines)
