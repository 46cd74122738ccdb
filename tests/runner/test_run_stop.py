"""Stopping: whatever ends a runner ends its shells first, and it leaves at once."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.protocol.proposals import Propose
from pi_workflows.protocol.runner import Child
from tests.runner.peer import Peer, launch_of, processes_with

pytestmark = pytest.mark.slow

# Deaf to SIGTERM, with a child of its own; writes a mark when it is up.
TREE = (
    "import os, signal, sys, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "os.fork()\n"
    "open(sys.argv[1] + str(os.getpid()), 'w').close()\n"
    "time.sleep(600)\n"
)
SHELL = """
run = shell(Command([sys.executable, "-c", CODE, MARK]), effect=idempotent_effect("test.run"))
workflow = define_workflow("shelled", input=Input, start="run", nodes={"run": run})
"""


@pytest.fixture
def running(author: Callable[[str], Path], start: Callable[[], Peer], tmp_path: Path) -> Peer:
    """A runner whose shell runs two deaf processes."""
    marks = tmp_path / "marks"
    marks.mkdir()
    text = SHELL.replace("CODE", repr(TREE)).replace("MARK", repr(f"{marks}/"))
    peer = start()
    peer.begin(launch_of(author(text), {}))
    while not peer.children:
        message = peer.next_or_end()
        assert message is not None
        if isinstance(message, Propose):
            peer.proposals.append(message)
            peer.accept(message)
    peer.send(peer.children[0].model_copy(update={"state": "registered"}))
    deadline = time.monotonic() + 20
    while len(list(marks.iterdir())) < 2:
        assert time.monotonic() < deadline, peer.printed()
        time.sleep(0.01)
    return peer


@pytest.mark.parametrize("reason", ["pause", "cancel", "timeout", "shutdown"])
def test_a_stop_ends_the_shells_and_the_runner(running: Peer, reason: str) -> None:
    """TERM, two seconds, KILL; the runner proposes nothing more and exits 0."""
    running.stop(reason)
    while (message := running.next_or_end()) is not None:
        assert isinstance(message, Child), message
    assert running.wait() == 0, running.printed()
    assert not processes_with(running.cookie)
    assert [child.state for child in running.children] == ["starting", "ended"]


def test_a_lost_channel_ends_the_shells_and_the_runner(running: Peer) -> None:
    """Without its server the runner ends what it started, exits 70 and never tries again."""
    running.channel.close()
    assert running.wait() == 70
    assert "the server closed the channel" in running.printed()
    assert not processes_with(running.cookie)


def test_a_server_that_breaks_the_protocol_is_lost_like_any_other(running: Peer) -> None:
    """A child frame that is no registration ends the shells and the runner."""
    running.send(running.children[0].model_copy(update={"state": "ended"}))
    assert running.wait() == 70
    assert "broke the protocol" in running.printed()
    assert not processes_with(running.cookie)


def test_a_killed_runner_leaves_a_shell_that_never_executed(
    author: Callable[[str], Path], start: Callable[[], Peer], tmp_path: Path
) -> None:
    """A process that waits to be registered ends with its runner: its order never comes."""
    mark = tmp_path / "mark"
    text = SHELL.replace("CODE", repr(f"open({str(mark)!r}, 'w')")).replace("MARK", "''")
    peer = start()
    peer.begin(launch_of(author(text), {}))
    while not peer.children:
        message = peer.next_or_end()
        assert message is not None
        if isinstance(message, Propose):
            peer.accept(message)
    os.kill(peer.pid, signal.SIGKILL)
    assert peer.wait() == -signal.SIGKILL
    descriptor = os.pidfd_open(peer.children[0].pid)
    try:
        while processes_with(peer.cookie):
            time.sleep(0.01)
    finally:
        os.close(descriptor)
    assert not mark.exists()


STUBBORN = """
@compute
BODY

workflow = define_workflow("stubborn", input=Input, start="a", nodes={"a": a})
"""


@pytest.mark.parametrize(
    "body",
    [
        "def a(ctx):\n    print('up', flush=True)\n    time.sleep(600)",
        "async def a(ctx):\n    print('up', flush=True)\n    await trio.sleep(600)",
        (
            "async def a(ctx):\n    print('up', flush=True)\n    while True:\n        try:\n"
            "            await trio.sleep(600)\n        except BaseException:\n            continue"
        ),
        (
            "def a(ctx):\n    threading.Thread(target=time.sleep, args=(600,)).start()\n"
            "    print('up', flush=True)\n    time.sleep(600)"
        ),
    ],
)
def test_no_function_can_hold_the_process(
    author: Callable[[str], Path], start: Callable[[], Peer], body: str
) -> None:
    """Neither a busy thread nor one of the author's own nor a swallowed cancellation keeps it."""
    peer = start()
    peer.begin(launch_of(author(STUBBORN.replace("BODY", body)), {}))
    peer.accept(peer.propose())
    while "up" not in peer.printed():
        time.sleep(0.01)
    peer.stop("cancel")
    assert peer.wait() == 0, peer.printed()


# Goes on when the runner's own watch over its end is up; a result of this size is put first and
# may not be held back.
TOLD = """
@compute
def step(ctx):
    while not any(isinstance(thread, threading.Timer) for thread in threading.enumerate()):
        time.sleep(0.001)
    open(MARK, "a").close()
    return "x" * 40000

workflow = define_workflow("told", input=Input, start="step", max_steps=1000,
    nodes={"step": step, "end": compute(lambda ctx: 1)},
    edges=[switch("step", on="$", cases={"x" * 40000: "step", "y": "end"})])
"""


def test_a_shutdown_waits_for_the_answers_to_what_was_sent_and_proposes_nothing_new(
    author: Callable[[str], Path], start: Callable[[], Peer], tmp_path: Path
) -> None:
    """A function that ends after the stop leaves no proposal that nobody would answer."""
    mark = tmp_path / "mark"
    peer = start()
    peer.begin(launch_of(author(TOLD.replace("MARK", repr(str(mark)))), {}))
    under_way = peer.propose()
    peer.stop("shutdown")
    deadline = time.monotonic() + 20
    while not mark.exists():
        assert time.monotonic() < deadline, peer.printed()
        time.sleep(0.01)
    peer.answer(under_way)
    assert peer.next_or_end() is None
    assert peer.wait() == 0
