"""`python -m pi_workflows.runner --mode run|resolve|validate`: the server's children."""

from __future__ import annotations

import argparse
import os
import sys


def main() -> int:
    """Do what the mode says and return the exit status (the runner protocol, "Program")."""
    parser = argparse.ArgumentParser(prog="pi_workflows.runner")
    parser.add_argument("--mode", required=True, choices=("run", "resolve", "validate"))
    mode: str = parser.parse_args().mode
    _leave_working_directory()
    # Each mode loads only what it needs: a resolver starts without the event loop.
    match mode:
        case "resolve":
            from pi_workflows.runner.resolve import main as resolve  # noqa: PLC0415

            return resolve()
        case "validate":
            from pi_workflows.runner.validate import main as validate  # noqa: PLC0415

            return validate()
        case _:
            from pi_workflows.runner.run import main as run  # noqa: PLC0415

            return run()


def _leave_working_directory() -> None:
    """Take the working directory off the import path, where `-m` puts it.

    It is the run's project, whose files must neither stand in for the engine's modules nor be
    imported unverified.
    """
    here = os.path.realpath(".")
    sys.path[:] = [entry for entry in sys.path if entry and os.path.realpath(entry) != here]


if __name__ == "__main__":
    sys.exit(main())
