"""The terminal that a person sits at, whatever the streams of the command are.

A passphrase is read there and nowhere else: no pipe, no file, no argument and no variable has it.
"""

from __future__ import annotations

import os
import termios
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Final

from pi_workflows.base.errors import AuthorityDenied, WrongUsage
from pi_workflows.base.limits import PASSPHRASE_CHARS_MAX
from pi_workflows.cli.escaping import escaped

_PATH: Final = "/dev/tty"
_LOCAL_FLAGS: Final = 3
_BYTES_MAX: Final = 4 * PASSPHRASE_CHARS_MAX


class Device:
    """An open terminal."""

    def __init__(self, descriptor: int) -> None:
        """Use a terminal's descriptor, which stays the caller's."""
        self._descriptor = descriptor

    def show(self, lines: Iterable[str]) -> None:
        """Write lines, escaped."""
        for line in lines:
            self._write(f"{escaped(line)}\n")

    def secret(self, prompt: str) -> str:
        """Ask for a passphrase, which the terminal does not show.

        Raises:
            WrongUsage: `passphraseMissing`: nothing was typed, or far too much.
        """
        before = termios.tcgetattr(self._descriptor)
        quiet = termios.tcgetattr(self._descriptor)
        quiet[_LOCAL_FLAGS] = (quiet[_LOCAL_FLAGS] & ~termios.ECHO) | termios.ICANON
        try:
            # What was typed before the question is no answer to it.
            termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, quiet)
            self._write(f"{escaped(prompt)}: ")
            typed = self._line()
        finally:
            termios.tcsetattr(self._descriptor, termios.TCSADRAIN, before)
            self._write("\n")
        if not typed or len(typed) > PASSPHRASE_CHARS_MAX:
            raise WrongUsage("No passphrase was typed.", code="passphraseMissing")
        return typed

    def _line(self) -> str:
        """Read one line without its end."""
        content = b""
        while not content.endswith(b"\n") and len(content) <= _BYTES_MAX:
            part = os.read(self._descriptor, _BYTES_MAX)
            if not part:
                break
            content += part
        return content.removesuffix(b"\n").decode("utf-8", "surrogateescape")

    def _write(self, text: str) -> None:
        """Write all of a text."""
        content = text.encode("utf-8", "backslashreplace")
        while content:
            content = content[os.write(self._descriptor, content) :]


@contextmanager
def device() -> Generator[Device]:
    """Open the terminal that the command belongs to.

    Raises:
        AuthorityDenied: `operatorMissing`: there is none, so that nobody can be asked.
    """
    try:
        descriptor = os.open(_PATH, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        raise AuthorityDenied(
            "The passphrase is asked at a terminal, and there is none.",
            code="operatorMissing",
            hint="Run the command at a terminal of your own.",
        ) from None
    try:
        yield Device(descriptor)
    finally:
        os.close(descriptor)
