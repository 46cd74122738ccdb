"""Durations, moments and sizes as people read them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_MS: Final = 1_000
_MINUTE_MS: Final = 60 * _MS
_UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("min", _MINUTE_MS), ("s", _MS))
_KIB: Final = 1_024
_SIZES: Final = ("KiB", "MiB", "GiB", "TiB")
_FEW: Final = 10


def duration(ms: int) -> str:
    """Return a duration: `0.4 s`, `12.3 s`, `3 min 20 s`, `2 d 4 h`."""
    ms = max(0, ms)
    if ms < _MINUTE_MS:
        # Cut, not rounded: a clock that runs never shows a minute as 60.0 s.
        return f"{ms // (_MS // 10) / 10:.1f} s"
    parts: list[str] = []
    for unit, size in _UNITS:
        amount, ms = divmod(ms, size)
        if amount or parts:
            parts.append(f"{amount} {unit}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


def age(ms: int) -> str:
    """Return how long ago something was, in one unit: `now`, `40 s`, `3 min`, `5 d`."""
    for unit, size in _UNITS:
        if ms >= size:
            return f"{ms // size} {unit}"
    return "now"


def moment(at_ms: int) -> str:
    """Return a moment in local time, to the millisecond, in a form that sorts."""
    local = datetime.fromtimestamp(at_ms / _MS, UTC).astimezone()
    return local.strftime("%Y-%m-%d %H:%M:%S.") + f"{at_ms % _MS:03d}"


def size(count_bytes: int) -> str:
    """Return a size: `512 bytes`, `1.5 KiB`, `20 MiB`."""
    if count_bytes < _KIB:
        return plural(count_bytes, "byte")
    amount, unit = count_bytes / _KIB, _SIZES[0]
    for larger in _SIZES[1:]:
        if amount < _KIB:
            break
        amount, unit = amount / _KIB, larger
    return f"{amount:.1f} {unit}" if amount < _FEW else f"{amount:.0f} {unit}"


def plural(count: int, singular: str, many: str | None = None) -> str:
    """Return a count with its noun: `1 run`, `3 runs`."""
    return f"{count:,} {singular if count == 1 else many or f'{singular}s'}"
