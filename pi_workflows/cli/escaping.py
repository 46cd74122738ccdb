"""Text from elsewhere, made safe to show on a terminal.

A run carries strings that anybody may have written: titles, outputs, errors, file names. On a
terminal some characters are commands. They move the cursor, set the window's title, turn the
direction of writing; a newline forges a line of ours. They are shown as escapes instead.
"""

from __future__ import annotations

import re
from typing import Final

# Controls (C0, DEL, C1), line and paragraph separators, what turns or hides text, and lone
# surrogates, which no output can encode. Joiners stay: scripts and emoji are written with them.
_UNSAFE: Final = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f"
    "]"
)
_BYTE_MAX: Final = 0xFF
_PLANE_MAX: Final = 0xFFFF
_SHORT: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def escaped(text: str) -> str:
    r"""Return text as one line that a terminal only shows.

    Args:
        text: Any text.

    Returns:
        The text with each character that is a command, that hides itself or that breaks the line
        written as `\n`, `\x1b` or `\u202e`. Ordinary text comes back as it is.
    """
    return _UNSAFE.sub(_escape, text)


def escaped_lines(text: str) -> list[str]:
    """Return text that may have several lines as lines, each of them escaped; tabs are spaces."""
    return [escaped(line.expandtabs()) for line in text.replace("\r\n", "\n").split("\n")]


def escaped_json(text: str) -> str:
    r"""Return JSON text that means the same and has no unsafe character: `\uXXXX` stands for each.

    Args:
        text: JSON in one line; such characters stand inside its strings only.
    """
    return _UNSAFE.sub(_json_escape, text)


def _escape(match: re.Match[str]) -> str:
    """Return what is shown for one character."""
    character = match[0]
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code <= _BYTE_MAX:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= _PLANE_MAX else f"\\U{code:08x}"


def _json_escape(match: re.Match[str]) -> str:
    """Return one character as JSON escapes it: two of them beyond the first plane."""
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
