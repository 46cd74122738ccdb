"""Loading a workflow in a process of its own, as a run would: for commands that need no server.

The decision on the resolver: one child program, one JSON line in, one out, 30 s, 8 MiB, ended with
its whole tree. What the workflow's file prints goes to standard error.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pi_workflows.base import canonical, ids
from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import Clock, SystemClock
from pi_workflows.base.errors import PayloadInvalid, Problem, ProblemsFound, Refused, Unavailable
from pi_workflows.base.limits import (
    CHILD_ANSWER_BYTES_MAX,
    CHILD_ANSWER_MS,
    FRAME_DEPTH_MAX,
    TERMINATE_SCAN_MS,
)
from pi_workflows.base.units import NS_PER_MS
from pi_workflows.server.paths import WORKER_VARIABLE

_READ_BYTES: Final = 65_536
_MS_PER_SECOND: Final = 1_000
_LOOK_SECONDS: Final = 0.02


def resolve(request: Mapping[str, Json], *, clock: Clock | None = None) -> dict[str, Json]:
    """Ask a resolver child one question.

    Args:
        request: `operation`, `projectPath`, `definitionsPath` and, where it is about one, `target`.
        clock: Measures the child's time.

    Returns:
        Its answer.

    Raises:
        ProblemsFound: What is wrong with the workflow.
        Refused: `resolverFailed`: the child did not answer in time, or died.
        Unavailable: `resolverNotStarted`.
    """
    line = canonical.encode(dict(request), depth_max=FRAME_DEPTH_MAX, field="request") + b"\n"
    patience: Clock = clock if clock is not None else SystemClock()
    worker_epoch = ids.random_id("check")
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "pi_workflows.runner", "--mode", "resolve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=str(request["projectPath"]),
            env={**os.environ, WORKER_VARIABLE: worker_epoch},
            process_group=0,
        )
    except OSError as error:
        raise Unavailable(
            f"The process that loads workflows could not be started: {error.strerror}.",
            code="resolverNotStarted",
        ) from None
    try:
        return _answer(_exchange(child, line, patience))
    finally:
        _end(child)
        _end_escaped(worker_epoch, patience)


def _exchange(child: subprocess.Popen[bytes], line: bytes, clock: Clock) -> bytes:
    """Send one line and read one."""
    assert child.stdin is not None, "a child without standard input"
    assert child.stdout is not None, "a child without standard output"
    until_ms = clock.monotonic_ns() // NS_PER_MS + CHILD_ANSWER_MS
    answers = child.stdout.fileno()
    with suppress(BrokenPipeError):
        # A request of a few paths fits the pipe: writing it cannot wait for the child.
        child.stdin.write(line)
        child.stdin.close()
    answer = bytearray()
    readiness = select.poll()
    readiness.register(answers, select.POLLIN)
    while not answer.endswith(b"\n"):
        left_ms = until_ms - clock.monotonic_ns() // NS_PER_MS
        if left_ms <= 0 or not readiness.poll(left_ms):
            raise _failed(f"took longer than {CHILD_ANSWER_MS // _MS_PER_SECOND} s")
        part = os.read(answers, _READ_BYTES)
        answer += part
        if not part:
            raise _failed("ended before it had answered")
        if len(answer) > CHILD_ANSWER_BYTES_MAX:
            raise _failed(f"answered more than {CHILD_ANSWER_BYTES_MAX:,} bytes")
    return bytes(answer)


def _answer(line: bytes) -> dict[str, Json]:
    """Read an answer, or raise the problems that it reports."""
    try:
        answer = canonical.decode(line, depth_max=FRAME_DEPTH_MAX, field="answer")
    except PayloadInvalid:
        answer = None
    if not isinstance(answer, dict):
        raise _failed("answered something that is no JSON object")
    listed = answer.get("problems")
    if isinstance(listed, list):
        raise ProblemsFound(
            Problem(str(each.get("code")), str(each.get("where")), str(each.get("message")))
            for each in listed
            if isinstance(each, dict)
        )
    return answer


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child with its group; what it loaded is not ours to wait for."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdout is not None:
        child.stdout.close()


def _end_escaped(worker_epoch: str, clock: Clock) -> None:
    """End what left the child's group: the cookie in its environment tells whose it was."""
    # Its event loop costs more than the rest of the command, and the child has ended by now.
    from pi_workflows.server.process import Tree, members, send  # noqa: PLC0415

    tree = Tree(frozenset({worker_epoch}))
    until_ms = clock.monotonic_ns() // NS_PER_MS + TERMINATE_SCAN_MS
    while left := members(tree):
        for each in left:
            send(each, signal.SIGKILL)
        if clock.monotonic_ns() // NS_PER_MS >= until_ms:
            return
        time.sleep(_LOOK_SECONDS)


def _failed(what: str) -> Refused:
    """Return the error of a child that did not do its work: the workflow's own code ran in it."""
    return Refused(f"The process that loads the workflow {what}.", code="resolverFailed")
