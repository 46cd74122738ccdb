"""Processes by their exact identity: the members of a tree, and ending it until nothing is left.

A process is its pid and its start time, so that a reused pid is never taken for it (and the boot,
where a file keeps it). Signals go through a pidfd whose process was compared after it was opened. A
member of a child's tree is whatever carries its cookie in the environment, or stands in a session
or process group that it or one of its shells leads. A process that leaves both behind and clears
its environment escapes.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import trio

from pi_workflows.base.limits import TERMINATE_GRACE_MS, TERMINATE_SCAN_MS
from pi_workflows.base.units import MS_PER_SECOND
from pi_workflows.server.paths import WORKER_VARIABLE

# Fields of /proc/<pid>/stat after the command's closing parenthesis (proc_pid_stat(5)).
_STATE: Final = 0
_GROUP: Final = 2
_SESSION: Final = 3
_START_TICKS: Final = 19
_DEAD_STATES: Final = frozenset({"Z", "X", "x"})
# One look can miss what a dying member started during it; two in a row cannot.
_EMPTY_LOOKS: Final = 2
_LOOK_SECONDS: Final = 0.02


class Identity(NamedTuple):
    """One process, as long as this boot lasts.

    Attributes:
        pid: Its number.
        start_time: When it started, in clock ticks since boot, as the kernel writes it.
    """

    pid: int
    start_time: str


class Facts(NamedTuple):
    """What the kernel says about a process.

    Attributes:
        is_dead: It has ended and waits to be reaped.
        group: Its process group.
        session: Its session.
        start_time: When it started, in clock ticks since boot.
    """

    is_dead: bool
    group: int
    session: int
    start_time: str


@dataclass(frozen=True, slots=True)
class Tree:
    """What belongs to one child, or to several.

    Attributes:
        worker_epochs: The values of the cookie that its members carry.
        leaders: Processes whose sessions and groups belong to it, while they exist, ended or not.
    """

    worker_epochs: frozenset[str]
    leaders: tuple[Identity, ...] = ()


@cache
def boot_id() -> str:
    """Return the identity of this boot of the machine."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def facts(pid: int) -> Facts | None:
    """Return what the kernel says about a process, or None when there is none of that number."""
    content = _read(f"/proc/{pid}/stat")
    if not content:
        return None
    # The command stands in parentheses and may hold both of them and spaces.
    fields = content.rpartition(b")")[2].decode("ascii").split()
    return Facts(
        is_dead=fields[_STATE] in _DEAD_STATES,
        group=int(fields[_GROUP]),
        session=int(fields[_SESSION]),
        start_time=fields[_START_TICKS],
    )


def is_alive(identity: Identity) -> bool:
    """Whether exactly this process runs."""
    found = facts(identity.pid)
    return found is not None and not found.is_dead and found.start_time == identity.start_time


def members(tree: Tree) -> list[Identity]:
    """Return every live process of a tree, without this one."""
    found = {pid: known for pid in _pids() if (known := facts(pid)) is not None}
    leaders = {
        leader.pid
        for leader in tree.leaders
        if (known := found.get(leader.pid)) and known.start_time == leader.start_time
    }
    cookies = {f"{WORKER_VARIABLE}={epoch}".encode() for epoch in tree.worker_epochs}
    return [
        Identity(pid, known.start_time)
        for pid, known in found.items()
        if not known.is_dead
        and pid != os.getpid()
        and (not leaders.isdisjoint((pid, known.group, known.session)) or _carries(pid, cookies))
    ]


def send(identity: Identity, number: signal.Signals) -> None:
    """Send a signal to exactly this process, if it still runs and is ours to signal."""
    try:
        descriptor = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return
    try:
        # The pidfd pins the number: what holds it now held it when the two were compared.
        if is_alive(identity):
            signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        return
    finally:
        os.close(descriptor)


async def end(
    tree: Tree, *, grace_ms: int = TERMINATE_GRACE_MS, scan_ms: int = TERMINATE_SCAN_MS
) -> tuple[Identity, ...]:
    """End every process of a tree: SIGTERM, SIGKILL after the grace, until nothing is left.

    Args:
        tree: What to end.
        grace_ms: How long its members may take to leave by themselves.
        scan_ms: How long leftovers are looked for after that.

    Returns:
        What is still there, which is nothing unless the kernel holds it. It cannot be cancelled.
    """
    found = members(tree)
    for member in found:
        send(member, signal.SIGTERM)
    empty_looks = 0 if found else 1
    with trio.CancelScope(shield=True):
        with trio.move_on_after(grace_ms / MS_PER_SECOND):
            await _gone(found)
        deadline = trio.current_time() + scan_ms / MS_PER_SECOND
        while True:
            found = members(tree)
            empty_looks = 0 if found else empty_looks + 1
            if empty_looks == _EMPTY_LOOKS or trio.current_time() >= deadline:
                break
            for member in found:
                send(member, signal.SIGKILL)
            with trio.move_on_after(_LOOK_SECONDS if found else 0):
                await _gone(found)
    return tuple(found)


async def _gone(identities: Iterable[Identity]) -> None:
    """Wait until none of these processes runs."""
    for identity in identities:
        try:
            descriptor = os.pidfd_open(identity.pid)
        except ProcessLookupError:
            continue
        try:
            if is_alive(identity):
                await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)


def _pids() -> list[int]:
    """Return the number of every process that can be seen."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]  # noqa: PTH208 - runs often


def _carries(pid: int, cookies: set[bytes]) -> bool:
    """Whether a process of our user carries one of these variables."""
    environment = _read(f"/proc/{pid}/environ").split(b"\0")
    if cookies.isdisjoint(environment):
        return False
    try:
        return os.stat(f"/proc/{pid}").st_uid == os.geteuid()  # noqa: PTH116 - as above
    except OSError:
        return False


def _read(path: str) -> bytes:
    """Return a file of /proc; nothing when the process is gone or not ours."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - as above
            return file.readall()
    except OSError:
        return b""
