"""Where a command writes: results to standard output, everything about them to standard error.

What is written as text is escaped here, so that no caller can forget it; documents are canonical
JSON.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TextIO, TypeAlias

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import WorkflowsError
from pi_workflows.base.limits import FRAME_DEPTH_MAX
from pi_workflows.cli.escaping import escaped, escaped_json
from pi_workflows.cli.failure import PROGRAM, Failure

if TYPE_CHECKING:
    from rich.console import Console

Span: TypeAlias = tuple[str, str]
"""A text that is safe to show, and its style."""

Line: TypeAlias = tuple[Span, ...]
"""One line for people."""

UNWRITABLE: Final = "outputUnwritable"
"""The code of the error when a stream takes nothing."""

# As wide as a line may get where nobody sees it wrapped.
_PIPE_COLUMNS: Final = 10_000
_RED: Final = "\x1b[1;31m"
_RESET: Final = "\x1b[0m"


class Output:
    """The two streams of a command, and what stands behind each.

    Args:
        is_json: Whether programs read the result.
        no_color: Whether colours are refused on the command line.
        environment: `NO_COLOR` and `TERM` have a say.
    """

    def __init__(
        self, *, is_json: bool, no_color: bool, environment: Mapping[str, str] = os.environ
    ) -> None:
        self.is_json = is_json
        self._no_color = no_color or bool(environment.get("NO_COLOR"))
        self._is_dumb = environment.get("TERM", "") in ("", "dumb")

    @property
    def is_terminal(self) -> bool:
        """Whether a person sees standard output."""
        return sys.stdout.isatty()

    @property
    def columns(self) -> int | None:
        """How wide the window is in which a person sees standard output; None in a pipe."""
        return shutil.get_terminal_size().columns if self.is_terminal else None

    @property
    def shows_live(self) -> bool:
        """Whether standard error is a terminal that can show something that moves."""
        return not self.is_json and not self._is_dumb and sys.stderr.isatty()

    @property
    def can_ask(self) -> bool:
        """Whether there is a person who sees a question and can type an answer."""
        return not self.is_json and sys.stdin.isatty() and sys.stderr.isatty()

    def document(self, document: Mapping[str, Json]) -> None:
        """Write one line of canonical JSON; on a terminal without characters that it would obey."""
        content = canonical.encode(dict(document), depth_max=FRAME_DEPTH_MAX)
        if sys.stdout.isatty():
            content = escaped_json(content.decode()).encode()
        with _writing():
            sys.stdout.flush()
            sys.stdout.buffer.write(content + b"\n")
            sys.stdout.flush()

    def line(self, text: str) -> None:
        """Write one line of the result."""
        _write(sys.stdout, escaped(text))

    def lines(self, texts: Iterable[str]) -> None:
        """Write several lines of the result."""
        for text in texts:
            self.line(text)

    def styled(self, lines: Iterable[Line]) -> None:
        """Write lines of the result; on a terminal with their styles, cut where the window ends."""
        if not self.is_terminal:
            self.lines(map(plain, lines))
            return
        # Its cost is worth it where somebody looks.
        from pi_workflows.cli.live import print_lines  # noqa: PLC0415

        print_lines(self.console(), tuple(lines))

    def note(self, text: str) -> None:
        """Write one line about the result, which programs need not read."""
        if not self.is_json:
            _write(sys.stderr, escaped(text))

    def fail(self, failure: Failure) -> None:
        """Say why the command failed."""
        if self.is_json:
            self.document(failure.document())
            return
        first, *rest = failure.lines()
        if sys.stderr.isatty() and not self._no_color and not self._is_dumb:
            first = f"{_RED}{PROGRAM}:{_RESET}{first.removeprefix(f'{PROGRAM}:')}"
        for text in (first, *rest):
            _write(sys.stderr, text)

    def console(self, *, is_error: bool = False) -> Console:
        """Return a console for a stream; without colours and controls unless it is a terminal.

        Args:
            is_error: Standard error instead of standard output.
        """
        from rich.console import Console  # noqa: PLC0415 - loading it costs as much as a command

        stream = sys.stderr if is_error else sys.stdout
        is_terminal = stream.isatty() and not self._is_dumb
        return Console(
            file=stream,
            force_terminal=is_terminal,
            no_color=self._no_color or not is_terminal,
            width=None if stream.isatty() else _PIPE_COLUMNS,
            highlight=False,
            markup=False,
            emoji=False,
        )


def plain(line: Line) -> str:
    """Return a line without its styles."""
    return "".join(text for text, _ in line).rstrip()


def _write(stream: TextIO, text: str) -> None:
    """Write a line that is safe already, at once."""
    with _writing():
        stream.write(f"{text}\n")
        stream.flush()


@contextmanager
def _writing() -> Generator[None]:
    """Give a stream that takes nothing an error of ours; a closed pipe has one already."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise WorkflowsError(
            f"cannot write the output: {error.strerror}", code=UNWRITABLE
        ) from None
