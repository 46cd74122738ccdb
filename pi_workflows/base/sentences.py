"""Parts of sentences for people: who acted, and a text in one line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pi_workflows.base.limits import DETAIL_CHARS_MAX

_ACTORS: Final[Mapping[str, str]] = {
    "control": "a local command",
    "session": "a Pi session",
    "human": "a person",
    "channel": "a channel",
    "controller": "a controller",
    "policy": "a timeout",
    "host": "the server",
    "system": "the recovery of a starting server",
}


def actor_words(actor: str) -> str:
    """Return who acted, by class and never by identity: `a local command`."""
    return _ACTORS.get(actor, "somebody")


def one_line(text: str) -> str:
    """Return a text's first line without its full stop, shortened to 200 characters."""
    line = text.strip().split("\n", 1)[0].rstrip().removesuffix(".")
    return line if len(line) <= DETAIL_CHARS_MAX else f"{line[: DETAIL_CHARS_MAX - 1]}…"


def closed(sentence: str) -> str:
    """Return a sentence with its end: its last part may be somebody else's, and have one."""
    return sentence if sentence.endswith((".", "?", "!", "…")) else f"{sentence}."
