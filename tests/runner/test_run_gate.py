"""The gate executes a complete order and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pi_workflows.runner import gate
from pi_workflows.runner.shell import Program

pytestmark = pytest.mark.slow


def sent(order: bytes) -> tuple[int, bytes, bytes]:
    """Give a gate its order and return exit code, output and status."""
    order_out, order_in = os.pipe()
    status_out, status_in = os.pipe()
    with subprocess.Popen(
        [sys.executable, "-I", "-S", gate.__file__, str(order_out), str(status_in)],
        pass_fds=(order_out, status_in),
        stdout=subprocess.PIPE,
    ) as process:
        os.close(order_out)
        os.close(status_in)
        os.write(order_in, order)
        os.close(order_in)
        status = os.read(status_out, 100)
        os.close(status_out)
        output, _ = process.communicate(timeout=30)
    return process.returncode, output, status


ORDER = Program(("printf", "%s|%s", "a b", "\udcff"), "/", {"PATH": os.defpath}).order()


def test_a_complete_order_becomes_the_command() -> None:
    """Every argument arrives as it was, also one that is no UTF-8."""
    assert sent(ORDER) == (0, b"a b|\xff", b"")


@pytest.mark.parametrize("length", [0, 1, 4, len(ORDER) - 1])
def test_a_part_of_an_order_executes_nothing(length: int) -> None:
    """A runner that is killed while it writes has not ordered anything."""
    assert sent(ORDER[:length]) == (127, b"", b"")


def test_the_commands_environment_is_exactly_the_ordered_one() -> None:
    """Nothing of the gate's own environment is handed on."""
    order = Program(("/usr/bin/env",), "/", {"A": "1", "B": "x=y"}).order()
    assert sent(order) == (0, b"A=1\nB=x=y\n", b"")


def test_a_command_that_cannot_be_executed_is_told_by_its_error_number(tmp_path: Path) -> None:
    """The status says why; the exit code says that nothing ran."""
    order = Program((str(tmp_path / "missing"),), "/", {}).order()
    assert sent(order) == (127, b"", b"2")
