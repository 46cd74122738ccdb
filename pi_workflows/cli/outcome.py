"""What a followed run came to: the exit code of the command, and its name for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pi_workflows.cli.run_view import RunView

FAILED: Final = 1
DEADLINE: Final = 8
WAITING: Final = 10
PAUSED: Final = 11
PARKED: Final = 12

_ENDS: Final = {"completed": 0, "failed": FAILED, "cancelled": 6, "timed_out": 7}
_STANDSTILLS: Final = {"waiting": WAITING, "paused": PAUSED, "ambiguous": PARKED}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How following a run ended.

    Attributes:
        name: The display status; `parked` when a person has to act on an error, `deadline` when
            time was up.
        exit_code: The exit code.
        is_end: Whether the run itself ended, not only this command's interest in it.
    """

    name: str
    exit_code: int
    is_end: bool = False


def outcome_of(view: RunView) -> Outcome | None:
    """Return what a run came to, or None while it goes on by itself.

    Args:
        view: The run as it stands.
    """
    status = view.display.status
    if status in _ENDS:
        return Outcome(status, _ENDS[status], is_end=True)
    code = _STANDSTILLS.get(status)
    if code is None and view.queue.status == "parked" and "resume" in view.display.controls:
        code = PARKED
    if code is None:
        return None
    return Outcome("parked" if code == PARKED else status, code)
