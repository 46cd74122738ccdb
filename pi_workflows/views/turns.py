"""What goes on in Pi sessions: open turns, running clocks, what is being judged or not yet told."""

from __future__ import annotations

from typing import Final, NamedTuple

from pi_workflows.base.sql import Read, load
from pi_workflows.domain.session_rows import MessageKind

SQL: Final = load(__package__, "turns.sql")


class OpenTurn(NamedTuple):
    """A turn that is open."""

    turn_id: str
    message_id: str
    run_id: str
    session_id: str
    kind: MessageKind
    active_elapsed_ms: int


class OpenClock(NamedTuple):
    """An active interval that is open, of an attempt that waits for its session.

    Attributes:
        run_id: The run.
        attempt_id: The attempt.
        request_id: What it asked.
        interval_number: The interval.
        timeout_ms: The attempt's budget; 0 is unlimited.
        spent_ms: What its earlier intervals have used up.
    """

    run_id: str
    attempt_id: str
    request_id: str
    interval_number: int
    timeout_ms: int
    spent_ms: int


class Judged(NamedTuple):
    """A submission that is being judged."""

    run_id: str
    request_id: str
    submission_id: str


def open_turns(read: Read) -> list[OpenTurn]:
    """Return the open turns of all sessions: one each at most."""
    return read.all(OpenTurn, SQL["open_turns"])


def open_clock(read: Read, run_id: str) -> OpenClock | None:
    """Return the active interval in which a run's session works; None without one."""
    return read.one(OpenClock, SQL["open_clock"], run_id=run_id)


def running_clocks(read: Read) -> list[OpenClock]:
    """Return every such interval."""
    return read.all(OpenClock, SQL["running_clocks"])


def judged(read: Read) -> list[Judged]:
    """Return every submission that is being judged."""
    return read.all(Judged, SQL["judged"])


def untold_ends(read: Read) -> list[str]:
    """Return the runs of sessions that ended without the session having been told."""
    return read.all(str, SQL["untold_ends"])
