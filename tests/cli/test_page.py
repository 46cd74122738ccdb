"""Markdown on a terminal."""

from __future__ import annotations

import io

from rich.console import Console

from pi_workflows.cli.page import print_page


def printed(text: str) -> str:
    """Return what a terminal with sixteen colours gets."""
    console = Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", width=60, highlight=False
    )
    with console.capture() as capture:
        print_page(console, text, columns_max=50)
    return capture.get()


def test_a_path_in_code_keeps_its_underscores_and_has_no_box() -> None:
    """Code is told by its colour alone: a background fits no window but a dark one."""
    shown = printed("Look at `tests/__snapshots__/a.ambr`.")
    assert "\x1b[36mtests/__snapshots__/a.ambr\x1b[0m" in shown
    assert "40m" not in shown


def test_a_heading_stands_at_the_left() -> None:
    """A heading is where the text is, behind an empty line."""
    lines = [line.rstrip() for line in printed("# Health").splitlines()]
    assert lines[0] == ""
    assert lines[1].startswith("\x1b[1;4mHealth")
