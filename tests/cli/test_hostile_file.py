"""Names that a hand wrote into a file: on a terminal they are shown, never obeyed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from pi_workflows.base import canonical
from pi_workflows.store.driver import connect
from tests.cli.archive import HOSTILE, spoil
from tests.cli.installation import Installation
from tests.cli.terminal import terminal

pytestmark = pytest.mark.slow
Words: TypeAlias = tuple[str, ...]
SHOWN = r"\x1b]0;owned\x07"
NARROW = 20
WIDE = 200
IN_WINDOWS: Final[Sequence[Words]] = (
    ("audit", "log", "{file}"),
    ("show", "ask", "--file", "{file}"),
    ("events", "say", "--file", "{file}"),
    ("explain", "stuck", "--file", "{file}"),
    ("audit", "explain", "{file}", "--run", "break-1"),
    ("audit", "diff-runs", "{file}", "say", "loop"),
    ("audit", "diff", "{file}", "--from", "0", "--to", "9"),
    ("audit", "at", "{file}", "--event", "9"),
    ("search", "e", "--file", "{file}"),
    ("state", "verify", "{file}"),
)
# A document has the name as JSON escapes it.
FOR_PROGRAMS: Final[Sequence[Words]] = (
    ("audit", "log", "{file}", "--json"),
    ("audit", "diff-runs", "{file}", "say", "ask", "--json"),
    ("show", "say", "--file", "{file}", "--page", "trace", "--json"),
)
# Those in which a name that a hand wrote stands.
TELLING = frozenset({"log", "show", "explain", "diff-runs"})
# No check of the schema is in the way of a hand that edits.
NAMES = (
    "UPDATE node_attempts SET node_id = :name WHERE node_id IN ('gather', 'pay')",
    "UPDATE projects SET canonical_path = '/' || :name",
    "UPDATE workflow_definitions SET workflow_name = :name",
    "UPDATE run_sources SET source_ref = :name",
    "UPDATE events SET actor_type = :name WHERE event_seq % 7 = 3",
    "UPDATE runs SET title = :name",
)


def all_shown(words: Words, file: Path, fresh: Installation, columns: int) -> str:
    """Run a command on a terminal that sees no hostile character, and return what it showed."""
    typed = [word.format(file=file.name) for word in words]
    with terminal(fresh, *typed, columns=columns) as shown:
        code = shown.end()
    assert code in (0, 1, 4), (words, shown.text)
    assert "Please report this." not in shown.text, (words, shown.text)
    assert not set(shown.text) & (set(HOSTILE) - set("\nevilowned]0;[2J31m")), words
    return shown.text


def test_a_narrow_terminal(file: Path, fresh: Installation) -> None:
    """In a window of twenty columns nothing breaks, and all that a file can tell is told."""
    for words in IN_WINDOWS:
        assert all_shown(words, file, fresh, NARROW)


def test_names_by_hand(file: Path, fresh: Installation) -> None:
    """Nodes, workflows, projects and actors whose names a hand wrote command no terminal."""
    rename(file, '"gather"', '"pay"')
    for statement in NAMES:
        named = statement.replace(":name", f"'{HOSTILE}'")
        spoil(file, f"PRAGMA ignore_check_constraints = ON; {named}")
    for words in IN_WINDOWS:
        text = all_shown(words, file, fresh, WIDE)
        assert SHOWN in text or TELLING.isdisjoint(words) or "contradicts itself" in text, words
    for words in FOR_PROGRAMS:
        assert r"\u001b]0;owned\u0007" in all_shown(words, file, fresh, WIDE)


def rename(file: Path, *names: str) -> None:
    """Write the hostile name in place of others wherever a stored document has them."""
    connection = connect(str(file))
    connection.pragma("foreign_keys", 0)
    connection.pragma("ignore_check_constraints", 1)
    name = canonical.encode(HOSTILE).decode()
    for each in names:
        connection.execute(
            "UPDATE blobs SET content = CAST(replace(CAST(content AS TEXT), ?, ?) AS BLOB)"
            " WHERE instr(content, CAST(? AS BLOB)) > 0",
            (each, name, each),
        )
    connection.execute("UPDATE blobs SET byte_length = length(content)")
    connection.close()
