"""A bar for work that a person waits for."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from pi_workflows.cli.output import Output

# The two passes over the log that take the time: its digests, and its replay.
_PASSES: Final = ("eventDigest", "replay")
_REBUILD: Final = "events"


class _ShownBar:
    """Moves a bar by the events that were read."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task
        self._event_count = 0

    def begin(self, event_count: int) -> None:
        """Learn how many events there are."""
        self._event_count = event_count

    def at(self, name: str, count: int) -> None:
        """Move the bar, and say what is under way."""
        passes = (name,) if name == _REBUILD else _PASSES
        done = self._event_count * passes.index(name) + count if name in passes else None
        self._progress.update(
            self._task,
            total=max(1, self._event_count * len(passes)),
            completed=done,
            detail=f"{name} {count:,}" if count else name,
        )


@contextmanager
def bar(output: Output, title: str) -> Generator[_ShownBar]:
    """Show a bar on standard error while the body runs, and take it away.

    Args:
        output: Whose terminal.
        title: What is done.
    """
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
        console=output.console(is_error=True),
        transient=True,
    )
    with progress:
        yield _ShownBar(progress, progress.add_task(title, total=None, detail=""))
