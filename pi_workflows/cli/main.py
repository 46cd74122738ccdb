"""Where `pi-workflows` begins: what may interrupt it is settled before the rest is loaded."""

from __future__ import annotations

import signal


def main() -> None:
    """Load the program, run the command that `sys.argv` names, and exit.

    Until everything is loaded Ctrl-C ends the process like one that never heard of it: nothing has
    begun, so that there is nothing to tell, least of all where it was.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from pi_workflows.cli.program import main as program  # noqa: PLC0415 - it takes time to load

    program()
