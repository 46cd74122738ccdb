"""Figures that the server keeps in memory until it is asked for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Calibration(NamedTuple):
    """Raw commits on the state's disk.

    Attributes:
        at_ms: Wall time at which they were measured.
        p50_us: Microseconds that half of them did not exceed.
        p99_us: The same of 99 in 100.
        samples: How many there were.
    """

    at_ms: int
    p50_us: int
    p99_us: int
    samples: int


@dataclass(slots=True)
class Measurements:
    """The newest of each.

    Attributes:
        calibration: None before the first `server status --calibrate`.
        violation_count: How many violations the newest check found; None before the first.
    """

    calibration: Calibration | None = None
    violation_count: int | None = None
