"""Progress that a node reports, in one line."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.outline import value_line

_BAR_CELLS: Final = 20
_CHARS_MAX: Final = 200


def progress_line(kind: str, key: str, data: Json, *, has_unicode: bool) -> str:
    """Return an update as a person reads it.

    Args:
        kind: Its type; `progress` has a form of its own.
        key: Its key.
        data: Its data.
        has_unicode: Whether a bar of blocks can be shown.
    """
    if kind != "progress" or not isinstance(data, dict):
        return f"{escaped(kind)} {escaped(key)}: {value_line(data, chars_max=_CHARS_MAX)}"
    parts = [_amount(data, has_unicode=has_unicode)]
    parts += [
        escaped(text) for name in ("label", "phase") if isinstance(text := data.get(name), str)
    ]
    status = data.get("status")
    if isinstance(status, str) and status not in ("running", "completed"):
        parts.append(escaped(status))
    return "  ".join(part for part in parts if part) or escaped(key)


def _amount(data: dict[str, Json], *, has_unicode: bool) -> str:
    """Return how much of it is done."""
    done, total, unit = data.get("completed"), data.get("total"), data.get("unit")
    name = escaped(unit) if isinstance(unit, str) else ""
    if not isinstance(done, int | float):
        return f"of {_number(total)} {name}" if isinstance(total, int | float) else ""
    if not isinstance(total, int | float) or total <= 0:
        return f"{_number(done)} {name}"
    cells = int(_BAR_CELLS * min(1.0, done / total))
    full, empty = ("█", "░") if has_unicode else ("#", ".")
    bar = full * cells + empty * (_BAR_CELLS - cells)
    return f"{bar} {_number(done)} of {_number(total)} {name}"


def _number(value: float) -> str:
    """Return a number without a fraction that says nothing."""
    return f"{int(value):,}" if value == int(value) else f"{value:,.1f}"
