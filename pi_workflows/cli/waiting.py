"""What a person sees who waits for work of a minute or more."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Protocol

from pi_workflows.cli.output import Output


class Bar(Protocol):
    """Shows how far a long check is."""

    def begin(self, event_count: int) -> None:
        """Learn how many events there are."""
        ...

    def at(self, name: str, count: int) -> None:
        """Learn what is under way and how many rows it has read."""
        ...


class _NoBar:
    """Shows nothing."""

    def begin(self, event_count: int) -> None:
        """Pass over the size."""

    def at(self, name: str, count: int) -> None:
        """Pass over progress."""


@contextmanager
def showing_progress(
    output: Output, title: str, passes: Sequence[str] = ("events",)
) -> Generator[Bar]:
    """Show a bar on a terminal while the body runs, and how long it has run.

    Args:
        output: Whose terminal.
        title: What is done.
        passes: The names under which `at` tells of reading every event; they take the time. None
            of them is a bar that swings.
    """
    if not output.shows_live:
        yield _NoBar()
        return
    # Only a person who waits needs it.
    from pi_workflows.cli.bar import bar  # noqa: PLC0415

    with bar(output, title, passes) as shown:
        yield shown
