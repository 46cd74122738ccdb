"""Runs on a terminal while they go on: the picture of one, or a row for each of several."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from pi_workflows.base.clock import Clock, SystemClock
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.following import Detail, Followed
from pi_workflows.cli.measures import duration
from pi_workflows.cli.outcome import Outcome
from pi_workflows.cli.output import Line, Output
from pi_workflows.cli.picture import Scene, picture, status_span
from pi_workflows.cli.run_view import TraceItem

# Heading, its reason, an empty line, two lines of progress, the prompt below.
_LINES_AROUND: Final = 8
_ROWS_MIN: Final = 3
# How often it moves.
_FRAME_MS: Final = 100
_STILL_FRAME_MS: Final = 1_000


class LiveDisplay:
    """Shows what is followed on standard error while time goes by, and leaves the last picture.

    Used as a context manager around `Follower.follow`; it is that follower's listener.

    Args:
        output: Whose terminal.
        has_advice: Whether it says which command helps a run on that stands still.
        clock: Wall time, for durations.
    """

    def __init__(
        self, output: Output, *, has_advice: bool = False, clock: Clock | None = None
    ) -> None:
        self._has_advice = has_advice
        self._console = output.console(is_error=True)
        self._clock: Clock = clock if clock is not None else SystemClock()
        self._runs: dict[str, Followed] = {}
        self._stale: set[str] = set()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        """Take the lower part of the terminal."""
        self._live = Live(
            console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop"
        )
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give it back; the last picture stays in the scrollback."""
        if self._live is not None:
            self._live.stop()
            self._live = None
        print_lines(self._console, self._lines(is_moving=False))

    @property
    def frame_ms(self) -> int | None:
        """Work turns ten times a second; of what stands still only the time goes on."""
        is_working = any(
            run.view is not None and run.view.display.status == "running"
            for run in self._runs.values()
        )
        return _FRAME_MS if is_working and not self._stale else _STILL_FRAME_MS

    @property
    def detail(self) -> Detail:
        """A node that failed says why."""
        return "picture"

    def changed(self, run: Followed, item: TraceItem) -> None:
        """Events show in the picture."""

    def seen(self, run: Followed) -> None:
        """Show a new view."""
        self._runs[run.run_id] = run
        self._stale.discard(run.run_id)
        self.moved()

    def lost(self, run: Followed) -> None:
        """Mark a picture as old."""
        self._stale.add(run.run_id)
        self.moved()

    def moved(self) -> None:
        """Draw again."""
        if self._live is not None:
            # A Ctrl-C that the terminal echoes behind a full line would move the cursor down.
            lines = [*self._lines(is_moving=True), ()]
            text = Text("\n", no_wrap=True, overflow="ellipsis").join(map(_text, lines))
            text.no_wrap, text.overflow = True, "ellipsis"
            self._live.update(text, refresh=True)

    def ended(self, run: Followed, outcome: Outcome, *, is_last: bool) -> None:
        """The last view shows it."""

    def _lines(self, *, is_moving: bool) -> Sequence[Line]:
        """Draw what is followed."""
        rows = max(_ROWS_MIN, self._console.height - _LINES_AROUND) if is_moving else None
        scene = Scene(
            now_ms=self._clock.now_ms(),
            is_stale=bool(self._stale),
            rows_max=rows,
            columns=self._console.width,
            has_unicode=has_unicode(self._console.encoding),
            is_moving=is_moving,
            has_advice=self._has_advice,
        )
        runs = [run for run in self._runs.values() if run.view is not None]
        if len(runs) == 1 and runs[0].view is not None:
            return picture(runs[0].view, scene)
        return [_row(run, scene, max(len(each.run_id) for each in runs)) for run in runs]


def print_lines(console: Console, lines: Sequence[Line]) -> None:
    """Print a picture; a line that is too long for the terminal loses its end."""
    for line in lines:
        console.print(_text(line), no_wrap=True, overflow="ellipsis", crop=True)


def has_unicode(encoding: str) -> bool:
    """Whether a stream of this encoding takes symbols."""
    return encoding.lower().replace("_", "-").startswith("utf")


def _row(run: Followed, scene: Scene, width: int) -> Line:
    """Return one of several runs in a line."""
    view = run.view
    assert view is not None, "a row without a view"
    symbol, style = status_span(view.display.status, scene)
    node = view.here or ""
    elapsed = duration((view.state.finished_at or scene.now_ms) - view.state.created_at)
    return (
        (f"{symbol:<13}", style),
        (f"  {run.run_id:<{width}}", ""),
        (f"  {elapsed:>12}", "dim"),
        (f"  {escaped(node)}", "bold"),
        (f"  {escaped(view.detail or '')}" if node else "", "italic"),
    )


def _text(line: Line) -> Text:
    """Return a line as rich shows it; its texts are never read as markup."""
    return Text.assemble(*line)
