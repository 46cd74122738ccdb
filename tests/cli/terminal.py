"""A pseudo terminal for a command: what is typed into it, and what it shows."""

from __future__ import annotations

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.cli.installation import PROGRAM, Installation

ROWS: Final = 40
COLUMNS: Final = 100
_WAIT_S: Final = 60
# What our own program may send: styles, cursor moves, erasing, showing the cursor.
_SEQUENCE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A command on a terminal.

    Attributes:
        child: The command's process.
        raw: Everything that it wrote.
    """

    def __init__(self, child: subprocess.Popen[bytes], descriptor: int) -> None:
        self.child = child
        self.raw = ""
        self._descriptor = descriptor
        self._bytes = b""
        self._seen = 0

    @property
    def text(self) -> str:
        """What was written, without styles and cursor moves."""
        return _SEQUENCE.sub("", self.raw).replace("\r", "")

    def until(self, awaited: str) -> None:
        """Read until a text has appeared behind the one that was awaited last, or fail."""
        deadline = time.monotonic() + _WAIT_S
        while (at := self.text.find(awaited, self._seen)) < 0:
            assert time.monotonic() < deadline, f"{awaited!r} never came:\n{self.text}"
            assert self._read(), f"{awaited!r} never came:\n{self.text}"
        self._seen = at + len(awaited)

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._descriptor, text.encode() + b"\n")

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        os.write(self._descriptor, b"\x03")

    def leave(self) -> None:
        """Press Ctrl-D."""
        os.write(self._descriptor, b"\x04")

    def resize(self, *, columns: int) -> None:
        """Make the window narrower or wider."""
        _set_columns(self._descriptor, columns)

    def close(self) -> None:
        """Close the window."""
        # Something else may get the number meanwhile, so that it stays taken.
        with Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), self._descriptor)

    def end(self) -> int:
        """Read to the end and return the exit code, or fail."""
        deadline = time.monotonic() + _WAIT_S
        while self._read():
            assert time.monotonic() < deadline, f"it did not end:\n{self.text}"
        return self.child.wait(_WAIT_S)

    def _read(self) -> bool:
        """Read once; whether there may be more."""
        if not select.select([self._descriptor], [], [], _WAIT_S)[0]:
            return False
        try:
            part = os.read(self._descriptor, 65_536)
        except OSError:
            # The other end of the terminal is closed.
            return False
        self._bytes += part
        self.raw = self._bytes.decode("utf-8", "ignore")
        return bool(part)


def _set_columns(descriptor: int, columns: int) -> None:
    """Give a terminal its width."""
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))


@contextmanager
def terminal(
    installation: Installation,
    *arguments: str,
    columns: int = COLUMNS,
    stdout: int | None = None,
) -> Generator[Terminal]:
    """Run a command on a terminal; what is left of it ends with the body.

    Args:
        installation: Where it runs.
        arguments: Its command line.
        columns: The width of the terminal.
        stdout: Where its standard output goes instead.
    """
    ours, theirs = os.openpty()
    _set_columns(theirs, columns)
    child = subprocess.Popen(
        # The terminal becomes the one whose Ctrl-C reaches the command.
        ["setsid", "--ctty", sys.executable, "-c", PROGRAM, *arguments],
        env={**installation.variables, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
        cwd=installation.project,
        stdin=theirs,
        stdout=theirs if stdout is None else stdout,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        with child:
            try:
                yield Terminal(child, ours)
            finally:
                child.send_signal(signal.SIGKILL)
    finally:
        os.close(ours)
