"""What went wrong in an author's code, in one line that names the file and line of theirs."""

from __future__ import annotations

import traceback
from collections.abc import Collection, Iterable
from contextlib import suppress
from types import TracebackType

from pi_workflows.base.errors import Problem, ProblemsFound
from pi_workflows.base.limits import ERROR_CHARS_MAX, PROBLEMS_MAX


def failure(error: BaseException, files: Collection[str], *, code: str) -> Problem:
    """Describe an exception that an author's code raised.

    Args:
        error: The exception.
        files: The paths of the author's source files.
        code: The problem's code.

    Returns:
        The problem: where in the author's files (the innermost line there, or empty), and the
        exception in one line of at most 1,000 characters.
    """
    where = ""
    text = ""
    # The exception's own words come from the author's code too, which may raise again.
    with suppress(BaseException):
        text = " ".join(str(error).split())
    if isinstance(error, SyntaxError) and error.filename is not None:
        where = f"{error.filename}:{error.lineno or 1}"
        text = error.msg
    else:
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename in files:
                where = f"{frame.f_code.co_filename}:{line}"
    kind = type(error).__name__
    message = f"{kind}: {text}" if text else kind
    if len(message) > ERROR_CHARS_MAX:
        message = f"{message[: ERROR_CHARS_MAX - 1]}…"
    return Problem(code, where, message)


def bounded(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems, each once; beyond the bound one line says how many more there are."""
    each = list(dict.fromkeys(problems))
    if len(each) <= PROBLEMS_MAX:
        return each
    rest = len(each) - PROBLEMS_MAX
    return [*each[:PROBLEMS_MAX], Problem("problemsMore", "", f"and {rest:,} more problems")]


class AuthorCode:
    """Runs a block of an author's code; whatever it raises comes out as ProblemsFound.

    An orderly `ProblemsFound` passes with its problems; an exit and an interruption, which nobody
    but that code sends to a child in a process group of its own, are failures like any other.

    Args:
        files: The paths of the author's source files; may still grow while the block runs.
        code: The code of the problem.
    """

    def __init__(self, files: Collection[str], *, code: str) -> None:
        self._files = files
        self._code = code

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave it, with what the author's code raised made readable."""
        if error is None or isinstance(error, ProblemsFound):
            return
        raise ProblemsFound(
            [failure(error, self._files, code=self._code)], code=self._code
        ) from None
