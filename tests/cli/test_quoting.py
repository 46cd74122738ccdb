"""What is copied from a hint into a shell means there what was meant here."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.quoting import quoted, quoted_path, quoted_words

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@settings(max_examples=30)
@given(st.lists(TEXTS, min_size=1, max_size=40))
@example(["\x1b]0;owned\x07\x9b\u202e'\\\n", "$(id)", "a'b", "", "\x01" + "f0", "\u00e9\n"])
def test_a_shell_reads_what_was_meant(words: list[str]) -> None:
    """Each word comes out of a shell as it was, and is shown without an escape of ours."""
    line = quoted_words(words)
    assert escaped(line) == line
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"],
        env={"LC_ALL": "C.UTF-8", "PATH": "/bin:/usr/bin"},
        check=True,
        capture_output=True,
    )
    assert done.stdout.decode().split("\0") == [*words, ""]


def test_words() -> None:
    """Plain words stay plain; a path that looks like an option is none."""
    assert quoted("backup.sqlite") == "backup.sqlite"
    assert quoted("a\udcff\n") == r"$'a\xff\x0a'"
    assert quoted_path(Path("-x y")) == "'./-x y'"
