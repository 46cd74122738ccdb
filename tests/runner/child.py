"""Starts a resolving or validating child over given lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pi_workflows.base import canonical


def spawn(*lines: bytes, cwd: Path, mode: str = "resolve") -> tuple[list[Any], str]:
    """Run a child over the lines; return its answers and its diagnostic output."""
    environment = {**os.environ, "PYTHONHASHSEED": "random"}
    child = subprocess.run(
        [sys.executable, "-P", "-m", "pi_workflows.runner", "--mode", mode],
        input=b"\n".join((*lines, b"")),
        cwd=cwd,
        env=environment,
        capture_output=True,
        timeout=60,
        check=True,
    )
    answers = [canonical.decode_canonical(line) for line in child.stdout.splitlines()]
    return answers, child.stderr.decode()
