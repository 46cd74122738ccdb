"""A bar for work that a person waits for."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from pi_workflows.cli.output import Output


class _ShownBar:
    """Moves a bar by the events that were read."""

    def __init__(self, progress: Progress, task: TaskID, passes: Sequence[str]) -> None:
        self._progress = progress
        self._task = task
        self._passes = passes
        self._event_count = 0

    def begin(self, event_count: int) -> None:
        """Learn how many events there are."""
        self._event_count = event_count

    def at(self, name: str, count: int) -> None:
        """Move the bar, and say what is under way."""
        passes = self._passes
        done = self._event_count * passes.index(name) + count if name in passes else None
        self._progress.update(
            self._task,
            # Without a pass that takes the time there is nothing to measure by; the bar swings.
            total=max(1, self._event_count * len(passes)) if passes else None,
            completed=done,
            detail=f"{name} {count:,}" if count else name,
        )


@contextmanager
def bar(output: Output, title: str, passes: Sequence[str]) -> Generator[_ShownBar]:
    """Show a bar on standard error while the body runs, and take it away.

    Args:
        output: Whose terminal.
        title: What is done.
        passes: As `showing_progress`.
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
        task = progress.add_task(title, total=None, detail="")
        yield _ShownBar(progress, task, passes)
