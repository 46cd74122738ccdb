"""The server's log: one bounded line a fact, in three files of four MiB. No payloads, no tokens.

A line is `<UTC time> <event> <name>=<value> …`. Text that a peer or a child chose is shortened and
has no control characters, so that no peer can write lines of its own.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pi_workflows.base.clock import Clock
from pi_workflows.base.limits import LOG_FILE_BYTES_MAX, LOG_FILES_MAX, LOG_LINE_CHARS_MAX
from pi_workflows.base.units import MS_PER_SECOND, NS_PER_MS

_MODE: Final = 0o600
_REPEAT_MS: Final = 1_000


class ServerLog:
    """Lines on disk, or none when the disk refuses them: a full disk must not stop a server.

    Args:
        file: The newest file; older ones are `<file>.1` and `<file>.2`. None keeps nothing.
        clock: Dates the lines.
    """

    def __init__(self, file: Path | None, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._descriptor: int | None = None
        self._size_bytes = 0
        self._repeated: dict[str, tuple[int, int]] = {}

    def write(self, event: str, /, **facts: str | float | bool | None) -> None:
        """Write one line.

        Args:
            event: What happened, such as `connection.closed`.
            facts: Names and values; None is left out. Values are shortened to fit the line.
        """
        parts = [_time(self._clock.now_ms()), event]
        parts += [f"{name}={_plain(value)}" for name, value in facts.items() if value is not None]
        self._append(f"{' '.join(parts)[:LOG_LINE_CHARS_MAX]}\n".encode("utf-8", "replace"))

    def limited(self, event: str, /, **facts: str | float | bool | None) -> None:
        """Write one line, once a second for this event; the next says how many it left out."""
        now_ms = self._clock.monotonic_ns() // NS_PER_MS
        last_ms, dropped = self._repeated.get(event, (now_ms - _REPEAT_MS, 0))
        if now_ms - last_ms < _REPEAT_MS:
            self._repeated[event] = last_ms, dropped + 1
            return
        self._repeated[event] = now_ms, 0
        self.write(event, **facts, left_out=dropped or None)

    def close(self) -> None:
        """Close the file; a later line opens it again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _append(self, line: bytes) -> None:
        """Append a line, turning the files over when the newest is full."""
        if self._file is None:
            return
        try:
            if self._descriptor is None:
                self._open(self._file)
            if self._size_bytes + len(line) > LOG_FILE_BYTES_MAX:
                self._turn_over(self._file)
            if self._descriptor is not None:
                self._size_bytes += os.write(self._descriptor, line)
        except OSError:
            self.close()

    def _open(self, file: Path) -> None:
        """Open the newest file at its end."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        self._descriptor = os.open(file, flags, _MODE)
        self._size_bytes = os.fstat(self._descriptor).st_size

    def _turn_over(self, file: Path) -> None:
        """Make room: each file takes the next older name, the oldest goes."""
        self.close()
        for age in range(LOG_FILES_MAX - 1, 0, -1):
            older = file.with_name(f"{file.name}.{age}")
            newer = file.with_name(f"{file.name}.{age - 1}") if age > 1 else file
            if newer.exists():
                newer.replace(older)
        self._open(file)


def _time(at_ms: int) -> str:
    """Return a wall time as `2026-01-31T12:00:00.000Z`."""
    moment = datetime.fromtimestamp(at_ms / MS_PER_SECOND, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: str | float) -> str:
    """Return a value without anything that could be taken for the end of its line or of itself."""
    text = str(value)
    if text.isprintable() and " " not in text:
        return text
    return ascii(text)
