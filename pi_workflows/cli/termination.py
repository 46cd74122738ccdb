"""Being told to end by the system: SIGTERM, and SIGHUP of a terminal that is gone.

A process that dies in place leaves its temporary files. So both unwind a command as Ctrl-C does.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
# What a shell says of a program that a signal ended.
_BY_SIGNAL: Final = 128


class Terminated(BaseException):
    """The system told this process to end; no error, so that nothing takes it for one.

    Args:
        number: The signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.name = signal.Signals(number).name
        self.exit_code = _BY_SIGNAL + number


def unwind_when_terminated() -> None:
    """Raise `Terminated` in the main thread at the first such signal; the next ones change nothing.

    What was set to be ignored stays so: `nohup` wants that.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _unwind)


def die_when_terminated() -> None:
    """Leave these signals to the system again, before something else sees to them."""
    for number in _SIGNALS:
        if signal.getsignal(number) is _unwind:
            signal.signal(number, signal.SIG_DFL)


def termination_in(error: BaseException) -> Terminated | None:
    """Return the end that was under way when an error was raised, or that it is; None without."""
    found: BaseException | None = error
    while found is not None and not isinstance(found, Terminated):
        found = found.__context__
    return found


def _unwind(number: int, _frame: FrameType | None) -> None:
    """Begin to unwind."""
    for each in _SIGNALS:
        if signal.getsignal(each) is _unwind:
            # A function and not SIG_IGN, which programs that are started would inherit.
            signal.signal(each, _go_on)
    raise Terminated(number)


def _go_on(_number: int, _frame: FrameType | None) -> None:
    """Finish what has begun."""
