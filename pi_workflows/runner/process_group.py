"""Process groups: who a process is, whether a group has members, and how to end them all."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

import trio

from pi_workflows.base.limits import TERMINATE_GRACE_MS

# Short beside the grace, long beside the cost of a look.
_LOOK_SECONDS: Final = 0.01
_DEAD_STATES: Final = frozenset({"Z", "X", "x"})
# Fields of /proc/<pid>/stat after the command's closing parenthesis (proc_pid_stat(5)).
_STATE: Final = 0
_GROUP: Final = 2
_START_TICKS: Final = 19


def start_identity(pid: int) -> str:
    """Return when a process started, in clock ticks since boot: with the pid it names one only.

    Raises:
        ProcessLookupError: No such process.
    """
    fields = _stat(pid)
    if fields is None:
        raise ProcessLookupError(pid)
    return fields[_START_TICKS]


def has_members(group: int) -> bool:
    """Say whether a process of this group still runs; one that waits to be reaped does not."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return any(
        _is_live_member(int(entry.name), group)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal()
    )


async def end(group: int, *, grace_ms: int = TERMINATE_GRACE_MS) -> None:
    """End every process of a group: SIGTERM, and SIGKILL to what is left after the grace.

    Args:
        group: The process group.
        grace_ms: How long its members may take to leave by themselves.

    It returns when no member runs, or a second grace after SIGKILL. Cancelling it leaves the group
    as it is.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            return
        with trio.move_on_after(grace_ms / 1_000):
            while has_members(group):  # noqa: ASYNC110 - the kernel tells nobody
                await trio.sleep(_LOOK_SECONDS)
            return


def kill(group: int) -> None:
    """Send SIGKILL to every process of a group, without waiting."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


def _is_live_member(pid: int, group: int) -> bool:
    """Say whether a process runs in the group."""
    fields = _stat(pid)
    return (
        fields is not None and fields[_GROUP] == str(group) and fields[_STATE] not in _DEAD_STATES
    )


def _stat(pid: int) -> list[str] | None:
    """Return the fields of a process after its command, or None when it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command stands in parentheses and may hold both of them and spaces.
    return text.rpartition(")")[2].split()
