"""Holds a child of the server until its registry entry is on disk, then becomes the child.

Run as `python -I -S gate.py GATE CHANNEL PROGRAM ARGUMENT…`, never imported. GATE is the read
end of a pipe: one byte opens it, its end without one means that the server is gone and nothing is
executed. CHANNEL is the descriptor that becomes number 3 of the program, or -1.

An interpreter rather than a shell stands here because a shell drops variables from the environment
whose names it could not have set itself.
"""

from __future__ import annotations

import os
import sys

_CHANNEL = 3
_NOT_EXECUTED = 127


def main() -> int:
    """Wait, then execute the program. Returns the exit status of a process that never became it."""
    gate, channel = int(sys.argv[1]), int(sys.argv[2])
    if not os.read(gate, 1):
        return _NOT_EXECUTED
    os.close(gate)
    if channel >= 0 and channel != _CHANNEL:
        os.dup2(channel, _CHANNEL)
        os.close(channel)
    program = sys.argv[3:]
    try:
        os.execv(program[0], program)  # noqa: S606 - this is what the program is for
    except OSError as error:
        sys.stderr.write(f"{program[0]}: {error.strerror}\n")
    return _NOT_EXECUTED


if __name__ == "__main__":
    sys.exit(main())
