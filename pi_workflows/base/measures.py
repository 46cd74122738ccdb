"""Durations, sizes and counts as people read them."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.units import MS_PER_SECOND

TIME_UNITS: Final = (
    ("d", 86_400 * MS_PER_SECOND),
    ("h", 3_600 * MS_PER_SECOND),
    ("min", 60 * MS_PER_SECOND),
    ("s", MS_PER_SECOND),
)
"""Each unit with its milliseconds, the largest first."""

_MINUTE_MS: Final = 60 * MS_PER_SECOND
_TENTH_MS: Final = MS_PER_SECOND // 10
_KIB: Final = 1_024
_SIZES: Final = ("KiB", "MiB", "GiB", "TiB")
_FEW: Final = 10


def duration(ms: int) -> str:
    """Return a duration: `0.4 s`, `12.3 s`, `3 min 20 s`, `2 d 4 h`."""
    ms = max(0, ms)
    if ms < _MINUTE_MS:
        # Cut, not rounded: a clock that runs never shows a minute as 60.0 s.
        return f"{ms // _TENTH_MS / 10:.1f} s"
    parts: list[str] = []
    for unit, length_ms in TIME_UNITS:
        amount, ms = divmod(ms, length_ms)
        if amount or parts:
            parts.append(f"{amount} {unit}")
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


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
