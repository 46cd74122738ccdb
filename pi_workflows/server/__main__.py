"""`python -m pi_workflows.server`: a server in the background, started by a command or a client."""

from __future__ import annotations

import argparse
import os
import sys

from pi_workflows.base.errors import WorkflowsError
from pi_workflows.server.main import serve
from pi_workflows.server.paths import locate


def main() -> int:
    """Serve the state directory of the environment; return the exit status."""
    parser = argparse.ArgumentParser(prog="pi_workflows.server")
    parser.add_argument("--ready-fd", type=int)
    parser.add_argument("--foreground", action="store_true")
    options = parser.parse_args()
    ready_fd: int | None = options.ready_fd
    foreground: bool = options.foreground
    try:
        return serve(locate(os.environ), foreground=foreground, ready_fd=ready_fd)
    except WorkflowsError as error:
        sys.stderr.write(f"{error.message}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
