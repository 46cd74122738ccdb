"""Holds a shell step's process until the server has recorded it, then becomes the command.

Run by path as `python -I -S gate.py ORDER STATUS`, never imported: it must start in milliseconds,
so it imports nothing that the interpreter has not already loaded. Both arguments are descriptors.

1. It reads ORDER to its end. The order is `<bytes>:<count>` and then the arguments and the
   environment, each text closed by NUL. An order that is not complete means that the runner is gone
   or has changed its mind: nothing is executed.
2. It executes the command. STATUS closes when that worked; otherwise the error number is written to
it.

An interpreter rather than a shell stands here because a shell changes the environment, the
command's own name and the errors of `exec`.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
# The public modules `signal` and `typing` bring others, which would double this program's time.
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

_READ_BYTES = 65_536
_NOT_EXECUTED = 127


def main() -> int:
    """Wait for the order and execute it; return the exit status of what never became it."""
    order, status = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(status, False)
    parts: list[bytes] = []
    while part := os.read(order, _READ_BYTES):
        parts.append(part)
    os.close(order)
    head, _, body = b"".join(parts).partition(b":")
    if not head or int(head) != len(body):
        return _NOT_EXECUTED
    count, *texts = body.split(b"\0")[:-1]
    arguments = texts[: int(count)]
    pairs = (text.partition(b"=") for text in texts[int(count) :])
    environment = {name: value for name, _, value in pairs}
    # The interpreter ignores these two, and exec would hand that on.
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)
    try:
        os.execvpe(arguments[0], arguments, environment)  # noqa: S606 - this is what the program is for
    except OSError as error:
        os.write(status, str(error.errno).encode())
    return _NOT_EXECUTED


if __name__ == "__main__":
    sys.exit(main())
