"""One command's processes: held at a gate until the server knows them, watched, ended as one."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import trio

from pi_workflows.authoring.commands import ShellLine
from pi_workflows.base.clock import Clock
from pi_workflows.base.limits import TERMINATE_GRACE_MS
from pi_workflows.base.units import NS_PER_MS
from pi_workflows.runner import process_group
from pi_workflows.runner.capture import Capture
from pi_workflows.runner.children import Children

_GATE: Final = str(Path(__file__).with_name("gate.py"))
_READ_BYTES: Final = 65_536
# Parts of an output that wait for the author's reader of lines.
_LINE_PARTS_MAX: Final = 64

OnLines: TypeAlias = Callable[[list[ShellLine]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Program:
    """What to execute, ready for the operating system.

    Attributes:
        arguments: The program and its arguments.
        cwd: The absolute directory.
        environment: All of its variables.
        stdin: What it reads, or None for nothing.
    """

    arguments: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    stdin: str | None = None

    def order(self) -> bytes:
        """Return what the gate is told: see `gate`."""
        texts = [str(len(self.arguments)), *self.arguments]
        texts += [f"{name}={value}" for name, value in self.environment.items()]
        body = b"".join(os.fsencode(text) + b"\0" for text in texts)
        return str(len(body)).encode() + b":" + body


@dataclass(slots=True)
class Execution:
    """A command that runs or has run.

    Attributes:
        program: What it is.
        stdout: Its output.
        stderr: Its errors.
        is_executed: The gate was opened, so the command may have done something.
        return_code: Its exit code, or minus the signal that ended it; None while it runs.
        duration_ms: Milliseconds from the gate's opening to its end.
    """

    program: Program
    stdout: Capture
    stderr: Capture
    is_executed: bool = False
    return_code: int | None = None
    duration_ms: int = 0

    @property
    def exit_code(self) -> int | None:
        """The exit code; None when a signal ended it or it did not run."""
        code = self.return_code
        return code if code is not None and code >= 0 else None

    @property
    def signal_name(self) -> str | None:
        """The signal that ended it."""
        code = self.return_code
        if code is None or code >= 0:
            return None
        try:
            return signal.Signals(-code).name
        except ValueError:  # a real-time signal
            return f"SIG{-code}"


class Shells:
    """Runs the commands of one runner."""

    def __init__(self, children: Children, clock: Clock) -> None:
        """Run commands.

        Args:
            children: Where each process is reported before it executes anything.
            clock: What measures how long they take.
        """
        self._children = children
        self._clock = clock

    async def run(
        self, execution: Execution, attempt_id: str, on_lines: OnLines | None = None
    ) -> None:
        """Run a command to its end, its whole group included.

        Args:
            execution: What to run; it is filled in on the way, also when this is cancelled.
            attempt_id: The attempt that it works for.
            on_lines: Called with the lines of each part of the outputs that arrives. When it falls
                behind, lines are left out.

        When this returns or is cancelled, no process of the command's group is left: what still
        runs gets SIGTERM and, after two seconds, SIGKILL.

        Raises:
            OSError: The command could not be executed; nothing of it ran.
        """
        async with (
            _gated(execution.program) as (process, order, status),
            self._group(process, execution, attempt_id) as start_identity,
        ):
            await self._children.register(process.pid, start_identity, attempt_id)
            await _open_gate(execution, order, status)
            await _watch(process, execution, on_lines)

    @asynccontextmanager
    async def _group(
        self, process: trio.Process, execution: Execution, attempt_id: str
    ) -> AsyncGenerator[str]:
        """Give the process's start identity, and end its group afterwards in every case."""
        start_identity = process_group.start_identity(process.pid)
        started_ns = self._clock.monotonic_ns()
        try:
            yield start_identity
        finally:
            with trio.CancelScope(shield=True):
                await process_group.end(process.pid)
                execution.return_code = await process.wait()
                for stream in (process.stdin, process.stdout, process.stderr):
                    if stream is not None:
                        await stream.aclose()
            execution.duration_ms = (self._clock.monotonic_ns() - started_ns) // NS_PER_MS
            self._children.ended(process.pid, start_identity, attempt_id)


@asynccontextmanager
async def _gated(
    program: Program,
) -> AsyncGenerator[tuple[trio.Process, trio.lowlevel.FdStream, trio.lowlevel.FdStream]]:
    """Start a gate in its own group; give its process, its order's way in, its status's way out."""
    order_out, order_in = os.pipe()
    status_out, status_in = os.pipe()
    async with (
        trio.lowlevel.FdStream(order_in) as order,
        trio.lowlevel.FdStream(status_out) as status,
    ):
        try:
            process = await trio.lowlevel.open_process(
                [sys.executable, "-I", "-S", _GATE, str(order_out), str(status_in)],
                stdin=subprocess.DEVNULL if program.stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=program.cwd,
                pass_fds=(order_out, status_in),
                process_group=0,
            )
        finally:
            os.close(order_out)
            os.close(status_in)
        yield process, order, status


async def _open_gate(
    execution: Execution, order: trio.lowlevel.FdStream, status: trio.lowlevel.FdStream
) -> None:
    """Let the command execute. Raises OSError when it cannot."""
    program = execution.program
    # Before the last byte is out: from then on nobody can say that nothing happened.
    execution.is_executed = True
    try:
        await order.send_all(program.order())
    except trio.BrokenResourceError:
        execution.is_executed = False
        raise ChildProcessError(errno.ECHILD, "the command's process ended too early") from None
    await order.aclose()
    number = await status.receive_some(_READ_BYTES)
    if number:
        execution.is_executed = False
        raise OSError(int(number), os.strerror(int(number)), program.arguments[0])


async def _watch(process: trio.Process, execution: Execution, on_lines: OnLines | None) -> None:
    """Capture the outputs until the command and its whole group have ended."""
    assert process.stdout is not None
    assert process.stderr is not None
    async with trio.open_nursery() as nursery:
        lines = _Lines(on_lines, nursery) if on_lines is not None else None
        if process.stdin is not None:
            nursery.start_soon(_write, process.stdin, execution.program.stdin or "")
        nursery.start_soon(_capture, process.stdout, execution.stdout, lines)
        nursery.start_soon(_capture, process.stderr, execution.stderr, lines)
        await process.wait()
        # What the command left running in the background ends with it.
        await process_group.end(process.pid)
        # A process that left the group may keep an output open for ever.
        nursery.cancel_scope.deadline = trio.current_time() + TERMINATE_GRACE_MS / 1_000


async def _write(stdin: trio.abc.SendStream, text: str) -> None:
    """Write the command's input; one that does not read it is none of our business."""
    try:
        await stdin.send_all(os.fsencode(text))
        await stdin.aclose()
    except trio.BrokenResourceError:
        return


async def _capture(stream: trio.abc.ReceiveStream, capture: Capture, lines: _Lines | None) -> None:
    """Keep what an output says, to its end."""
    is_last = False
    while not is_last:
        data = await stream.receive_some(_READ_BYTES)
        is_last = not data
        text = capture.feed(data, is_last=is_last)
        if lines is not None:
            lines.put([*capture.lines(text, is_last=is_last)])
    if lines is not None:
        lines.close_one()


class _Lines:
    """Lines on their way to the author's reader, which must not hold up the command's outputs."""

    def __init__(self, on_lines: OnLines, nursery: trio.Nursery) -> None:
        self._on_lines = on_lines
        self._open_count = 2
        self._sender, self._receiver = trio.open_memory_channel[list[ShellLine]](_LINE_PARTS_MAX)
        nursery.start_soon(self._deliver)

    def put(self, lines: list[ShellLine]) -> None:
        """Pass lines on, or leave them out when the reader is far behind."""
        if not lines:
            return
        try:
            self._sender.send_nowait(lines)
        except trio.WouldBlock:
            return

    def close_one(self) -> None:
        """Note that one of the two outputs has ended."""
        self._open_count -= 1
        if not self._open_count:
            self._sender.close()

    async def _deliver(self) -> None:
        async for lines in self._receiver:
            await self._on_lines(lines)
