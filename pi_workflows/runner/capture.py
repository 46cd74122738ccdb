"""What a command writes: its first million characters, and its lines as they come."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Final, Literal

from pi_workflows.authoring.commands import ShellLine
from pi_workflows.base import canonical
from pi_workflows.base.limits import SHELL_LINE_CHARS_MAX, SHELL_OUTPUT_CHARS_MAX

_DECODER: Final = codecs.getincrementaldecoder("utf-8")


class Capture:
    """One of a command's two outputs. Undecodable bytes become U+FFFD.

    Attributes:
        is_truncated: Whether more was written than is kept.
    """

    def __init__(self, stream: Literal["stdout", "stderr"]) -> None:
        """Begin with nothing.

        Args:
            stream: Which output it is.
        """
        self.is_truncated = False
        self._stream: Literal["stdout", "stderr"] = stream
        self._decoder = _DECODER("replace")
        self._parts: list[str] = []
        self._room_chars = SHELL_OUTPUT_CHARS_MAX
        self._line = ""

    @property
    def text(self) -> str:
        """What is kept."""
        return "".join(self._parts)

    def feed(self, data: bytes | bytearray, *, is_last: bool = False) -> str:
        """Take bytes and return their text; only what fits is kept."""
        text = self._decoder.decode(data, is_last)
        kept = text[: self._room_chars]
        if kept:
            self._parts.append(kept)
            self._room_chars -= len(kept)
        self.is_truncated = self.is_truncated or len(kept) < len(text)
        return text

    def lines(self, text: str, *, is_last: bool = False) -> Iterator[ShellLine]:
        """Yield the lines that text completes; at the end also the one that no newline closed.

        Args:
            text: What `feed` returned.
            is_last: Nothing follows.
        """
        *complete, self._line = (self._line + text).split("\n")
        for line in complete:
            yield self._shell_line(line)
        # A program that never ends its line costs no more than a line may be long.
        self._line = self._line[:SHELL_LINE_CHARS_MAX]
        if is_last and self._line:
            yield self._shell_line(self._line)
            self._line = ""

    def _shell_line(self, line: str) -> ShellLine:
        return ShellLine(self._stream, line.removesuffix("\r")[:SHELL_LINE_CHARS_MAX])


def bounded(text: str, bytes_max: int) -> tuple[str, bool]:
    """Return text whose JSON is within a size, and whether it had to be cut.

    Args:
        text: Any text without lone surrogates. A control character takes six bytes in JSON.
        bytes_max: The size that its JSON may have.
    """
    cut = text
    while (size := len(canonical.encode(cut))) > bytes_max:
        # Never less than proportionally, so that this ends after a few rounds.
        cut = cut[: len(cut) * bytes_max // (size + 1)]
    return cut, len(cut) < len(text)
