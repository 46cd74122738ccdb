"""Words of commands that we offer: what is copied into a shell means there what was meant here.

A word with characters that a terminal would obey, or that cannot be seen, is written with escapes
of the shell's own, `$'...'`, so that the line that is shown is the line that works.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pi_workflows.cli.escaping import escaped

# What `$'...'` would not leave as it is, each with what stands for it.
_SPECIAL: Final = {"'": r"\'", "\\": r"\\"}


def quoted(text: str) -> str:
    """Return a word as it is typed into a shell.

    Args:
        text: What the shell is to make of it, without NUL.
    """
    if escaped(text) == text:
        return shlex.quote(text)
    return f"$'{''.join(map(_ansi, text))}'"


def quoted_path(path: Path) -> str:
    """Return a path as it is typed into a shell, which no command takes for an option."""
    text = str(path)
    return quoted(f"./{text}" if text.startswith("-") else text)


def quoted_words(words: Iterable[str]) -> str:
    """Return words as they are typed into a shell, one after the other."""
    return " ".join(map(quoted, words))


def _ansi(character: str) -> str:
    """Return a character as it stands inside `$'...'`."""
    if character in _SPECIAL:
        return _SPECIAL[character]
    if escaped(character) == character:
        return character
    # Byte by byte, which means the same in every locale.
    return re.sub("(..)", r"\\x\1", character.encode(errors="surrogateescape").hex())
