"""How a runner ends: the first reason decides, what is under way is cancelled, all leave."""

from __future__ import annotations

import os
import sys
import threading
from typing import Final, NoReturn

import trio

from pi_workflows.base.limits import RUNNER_SHUTDOWN_MS
from pi_workflows.runner.caught import Caught

EXIT_DONE: Final = 0
# EX_SOFTWARE: the server cannot expect this runner's work to be complete.
EXIT_LOST: Final = 70
_STDERR: Final = 2


class Ending:
    """The end of this runner. Only the trio thread may use it.

    Attributes:
        scope: What is cancelled when the end is decided before the work is done.
        is_leaving: The server has paused the run while a manual effect applies: only that effect's
            settlement may still be proposed, and the runner ends after it.
    """

    def __init__(self) -> None:
        """Begin a runner that has no reason to end yet."""
        self.scope = trio.CancelScope()
        self.is_leaving = False
        self._exit_code: int | None = None

    @property
    def exit_code(self) -> int:
        """The process's exit status; 0 when the work came to its end by itself."""
        return EXIT_DONE if self._exit_code is None else self._exit_code

    @property
    def is_decided(self) -> bool:
        """Whether something has already ended this runner."""
        return self._exit_code is not None

    def end(self, exit_code: int, reason: str | None = None) -> None:
        """End the runner, unless something has ended it already.

        Args:
            exit_code: The process's exit status.
            reason: A line for the diagnostic output, when the server could not know it otherwise.
        """
        if self._exit_code is not None:
            return
        self._exit_code = exit_code
        if reason is not None:
            say(reason)
        # An author's coroutine that swallows its cancellation must not keep the process.
        guard = threading.Timer(RUNNER_SHUTDOWN_MS / 1_000, leave, (exit_code,))
        guard.daemon = True
        guard.start()
        self.scope.cancel()

    async def leave_now(self, exit_code: int) -> NoReturn:
        """End the runner from inside the work that it ends: this never returns."""
        self.end(exit_code)
        await trio.sleep_forever()
        raise AssertionError


def say(line: str) -> None:
    """Write a line to the diagnostic output, which the server keeps the end of."""
    with Caught():
        os.write(_STDERR, f"{line}\n".encode(errors="replace"))


def leave(exit_code: int) -> NoReturn:
    """End the process at once.

    Exit handlers of the author's modules do not run, nor do their threads hold the process: a
    runner may be killed at any moment, so nothing can rely on them.
    """
    for stream in (sys.stdout, sys.stderr):
        # The author may have put anything in their place.
        with Caught():
            stream.flush()
    os._exit(exit_code)
