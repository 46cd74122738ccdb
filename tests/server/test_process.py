"""Children are written down before they execute, and end with everything that they started."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.server import process, registry
from pi_workflows.server.process import Identity, Tree
from pi_workflows.server.registry import Registry
from tests.server.processes import PATIENCE_SECONDS, Nest, cookied, nest

GATE = str(Path(registry.__file__).with_name("gate.py"))

# Reports on its standard output when it and whatever it starts are there.
STUBBORN = """
    import signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("here", flush=True)
    time.sleep(1000)
"""
# Starts a process of another session and group, which ignores SIGTERM, and ends.
DETACHED = """
    import subprocess, sys
    child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    child += "print('here', flush=True); time.sleep(1000)"
    subprocess.Popen([sys.executable, "-I", "-c", child], start_new_session=True)
"""
# Starts a process without the cookie in its own session, in a group that it leads.
BARE = """
    import subprocess, sys, time
    child = "import time; print('here', flush=True); time.sleep(1000)"
    subprocess.Popen([sys.executable, "-I", "-c", child], env={}, process_group=0)
    time.sleep(1000)
"""


@pytest.fixture
def den(tmp_path: Path) -> Iterator[Nest]:
    """Children that must be gone at the end."""
    with nest(tmp_path / "children") as made:
        yield made


async def here(output: int) -> None:
    """Wait until a child says that it is there."""
    with trio.fail_after(PATIENCE_SECONDS):
        async with trio.lowlevel.FdStream(output) as stream:
            assert await stream.receive_some(4) == b"here"


def all_of(output: int) -> bytes:
    """Return everything that an ended child wrote."""
    with os.fdopen(output, "rb") as read:
        return read.read()


def test_entry_is_on_disk_before_the_child_executes(den: Nest) -> None:
    """A child that reads its own registry entry first of all finds it complete."""
    out, into = os.pipe()
    path = den.directory
    program = """
        import os, pathlib, sys
        name = os.environ["PI_WORKFLOWS_WORKER"] + ".json"
        sys.stdout.write(pathlib.Path(sys.argv[1], name).read_text())
    """

    async def run() -> None:
        child = den.spawn(program, str(path), stdout=into)
        os.close(into)
        assert (await child.wait()).code == 0
        entry = canonical.decode(all_of(out).strip())
        assert entry == {
            "bootId": process.boot_id(),
            "kind": "run",
            "pid": child.pid,
            "processGroup": child.pid,
            "shells": [],
            "startTime": child.identity.start_time,
        }
        assert await child.kill_tree() == ()
        assert list(path.iterdir()) == []

    trio.run(run)


def test_gate_without_a_server_executes_nothing(tmp_path: Path) -> None:
    """A child whose server dies before its entry is on disk never becomes the program."""
    gate, opener = os.pipe()
    proof = tmp_path / "executed"
    command = [sys.executable, "-I", "-S", GATE, str(gate), "-1", "/bin/touch", str(proof)]
    held = subprocess.Popen(command, pass_fds=(gate,))
    os.close(gate)
    os.close(opener)
    assert held.wait() == 127
    assert not proof.exists()


def test_child_gets_the_channel_as_descriptor_three_and_nothing_else(den: Nest) -> None:
    """A child has its three standard descriptors and the channel; the server's own are closed."""
    ours, theirs = socket.socketpair()
    kept = os.open("/dev/null", os.O_RDONLY)
    program = """
        import os, socket
        # The listing itself takes one descriptor, which is closed when it can be looked at.
        found = [n for n in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + n)]
        socket.socket(fileno=3).sendall(" ".join(sorted(found)).encode())
    """

    async def run() -> None:
        child = den.spawn(program, channel=theirs.fileno())
        theirs.close()
        await child.wait()
        assert ours.recv(100) == b"0 1 2 3"
        await child.kill_tree()

    trio.run(run)
    os.close(kept)
    ours.close()


def test_environment_is_the_servers_without_ours_and_with_the_clients(den: Nest) -> None:
    """Variables of any name pass, those of the product do not, and five are the client's."""
    server = {
        "odd.name": "1",
        "PATH": "/server",
        "TZ": "Europe/Berlin",
        "PI_WORKFLOWS_STATE_DIR": "/x",
        "LC_CTYPE": "C.UTF-8",
    }
    made = registry.environment(
        server, {"PATH": "/client", "HOME": "/no", "LANG": "a\0b"}, "worker-1"
    )
    assert made == {
        "odd.name": "1",
        "PATH": "/client",
        "LC_CTYPE": "C.UTF-8",
        "PI_WORKFLOWS_WORKER": "worker-1",
    }
    assert registry.environment(server, None, "worker-1")["TZ"] == "Europe/Berlin"
    out, into = os.pipe()
    program = "import os; os.write(1, open('/proc/self/environ','rb').read())"

    async def run() -> None:
        child = den.spawn(program, env=server, stdout=into)
        os.close(into)
        await child.wait()
        found = dict(part.split(b"=", 1) for part in all_of(out).split(b"\0") if part)
        assert found == {
            name.encode(): value.encode()
            for name, value in registry.environment(server, None, child.worker_epoch).items()
        }
        await child.kill_tree()

    trio.run(run)


def test_stubborn_child_is_killed_after_its_grace(den: Nest) -> None:
    """SIGTERM that is ignored is followed by SIGKILL."""
    out, into = os.pipe()

    async def run() -> None:
        child = den.spawn(STUBBORN, stdout=into)
        os.close(into)
        await here(out)
        assert await child.kill_tree(grace_ms=50) == ()
        assert child.exit().signal == "SIGKILL"

    trio.run(run)


def test_child_that_leaves_on_request_is_not_killed(den: Nest) -> None:
    """Within its grace a child ends by itself, with a status of its own."""
    out, into = os.pipe()
    program = """
        import signal, sys, time
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        print("here", flush=True)
        time.sleep(1000)
    """

    async def run() -> None:
        child = den.spawn(program, stdout=into)
        os.close(into)
        await here(out)
        assert await child.kill_tree(grace_ms=30_000) == ()
        assert child.exit().code == 7

    trio.run(run)


def test_process_that_left_session_and_group_is_found_by_its_cookie(den: Nest) -> None:
    """A daemon that a child started and left behind ends with the child's tree."""
    out, into = os.pipe()

    async def run() -> None:
        child = den.spawn(DETACHED, stdout=into)
        os.close(into)
        await here(out)
        assert (await child.wait()).code == 0
        assert len(cookied(den.worker_epochs)) == 1
        assert await child.kill_tree(grace_ms=50) == ()
        assert cookied(den.worker_epochs) == []

    trio.run(run)


def test_process_without_the_cookie_is_found_by_its_session(den: Nest) -> None:
    """A process that cleared its environment ends too, while it stays in the child's session."""
    out, into = os.pipe()

    async def run() -> None:
        child = den.spawn(BARE, stdout=into)
        os.close(into)
        await here(out)
        (bare,) = [
            member
            for member in process.members(Tree(frozenset(), (child.identity,)))
            if member.pid != child.pid
        ]
        assert await child.kill_tree(grace_ms=50) == ()
        assert not process.is_alive(bare)

    trio.run(run)


def test_signal_reaches_exactly_the_process_that_was_meant() -> None:
    """A number that another process has by now is left alone."""
    with subprocess.Popen(["/bin/sleep", "1000"]) as other:
        known = process.facts(other.pid)
        assert known is not None
        stale = Identity(other.pid, str(int(known.start_time) - 1))
        process.send(stale, signal.SIGKILL)
        assert process.members(Tree(frozenset(), (stale,))) == []
        assert other.poll() is None
        process.send(Identity(other.pid, known.start_time), signal.SIGKILL)
        assert other.wait() == -signal.SIGKILL
    process.send(Identity(other.pid, known.start_time), signal.SIGKILL)


def test_shell_that_is_not_of_the_childs_session_is_refused(den: Nest) -> None:
    """A runner cannot have a stranger's process written down as its own, and so ended."""
    out, into = os.pipe()

    async def run() -> None:
        child = den.spawn(BARE, stdout=into)
        os.close(into)
        await here(out)
        own = process.facts(os.getpid())
        assert own is not None
        with pytest.raises(ProtocolViolation) as refused:
            child.add_shell(os.getpid(), own.start_time, own.group)
        assert refused.value.reason_code == "shellForeign"
        (shell,) = process.members(Tree(frozenset(), (child.identity,)))[1:]
        child.add_shell(shell.pid, shell.start_time, shell.pid)
        entry = canonical.decode(
            (den.directory / f"{child.worker_epoch}.json").read_bytes().strip()
        )
        assert isinstance(entry, dict)
        assert entry["shells"] == [{"pid": shell.pid, "startTime": shell.start_time}]
        child.drop_shell(shell.pid)
        await child.kill_tree(grace_ms=50)

    trio.run(run)


def test_failed_spawn_leaves_nothing(den: Nest) -> None:
    """A directory that cannot be entered costs neither an entry nor a process."""
    with pytest.raises(FileNotFoundError):
        den.registry.spawn(
            ["/bin/true"],
            kind="run",
            worker_epoch="worker-1",
            env={"PI_WORKFLOWS_WORKER": "worker-1"},
            cwd="/does/not/exist",
        )
    assert list(den.directory.iterdir()) == []


def test_successor_ends_what_the_registry_names(den: Nest) -> None:
    """A server that takes over ends a shell whose runner is gone, by its entry alone."""
    out, into = os.pipe()

    async def run() -> None:
        child = den.spawn(BARE, stdout=into)
        os.close(into)
        await here(out)
        (shell,) = [
            member
            for member in process.members(Tree(frozenset(), (child.identity,)))
            if member.pid != child.pid
        ]
        child.add_shell(shell.pid, shell.start_time, shell.pid)
        os.kill(child.pid, signal.SIGKILL)
        await child.wait()
        # Reaped, as init does with the children of a server that was killed.
        os.waitid(os.P_PIDFD, child.pidfd, os.WEXITED)  # noqa: ASYNC222 - it has ended
        assert process.is_alive(shell)
        successor = Registry(den.directory)
        assert await successor.recover([]) == ()
        assert not process.is_alive(shell)
        assert list(den.directory.iterdir()) == []
        await child.kill_tree()

    trio.run(run)


def test_successor_ends_a_whole_tree(den: Nest) -> None:
    """A child that lives ends with what stands in its session, cookie or not."""
    out, into = os.pipe()

    async def run() -> None:
        child = den.spawn(BARE, stdout=into)
        os.close(into)
        await here(out)
        tree = process.members(Tree(frozenset(), (child.identity,)))
        assert len(tree) == 2
        assert await Registry(den.directory).recover([]) == ()
        assert not any(process.is_alive(member) for member in tree)
        assert child.exit().signal == "SIGTERM"
        await child.kill_tree()

    trio.run(run)


def test_entry_that_nobody_can_read_still_names_its_cookie(den: Nest) -> None:
    """A damaged entry ends its child by its name; one of another boot ends nobody."""
    out, into = os.pipe()
    bystander = subprocess.Popen(["/bin/sleep", "1000"])
    known = process.facts(bystander.pid)
    assert known is not None
    started = known.start_time

    async def run() -> None:
        child = den.spawn(STUBBORN, stdout=into)
        os.close(into)
        await here(out)
        (den.directory / f"{child.worker_epoch}.json").write_bytes(b"{")
        stale: dict[str, Json] = {
            "bootId": "another boot",
            "kind": "run",
            "pid": bystander.pid,
            "processGroup": bystander.pid,
            "shells": [],
            "startTime": started,
        }
        (den.directory / "worker-2.json").write_bytes(canonical.encode(stale))
        (den.directory / "worker-3.new").write_bytes(b"")
        assert await Registry(den.directory).recover(["worker-4"]) == ()
        assert list(den.directory.iterdir()) == []
        assert child.exit().signal == "SIGKILL"
        await child.kill_tree()

    trio.run(run)
    assert bystander.poll() is None
    bystander.kill()
    bystander.wait()


@pytest.mark.slow
def test_server_that_a_step_started_outlives_the_step(den: Nest, state_dir: Path) -> None:
    """A step that calls the command line may start a server, which is no part of its tree."""
    out, into = os.pipe()
    program = """
        import pathlib, sys
        from pi_workflows.server.start import start_detached
        print(start_detached(pathlib.Path(sys.argv[1])).pid)
    """

    async def run() -> None:
        child = den.spawn(program, str(state_dir), stdout=into)
        os.close(into)
        assert (await child.wait()).code == 0
        server = int(all_of(out))
        known = process.facts(server)
        assert known is not None
        identity = Identity(server, known.start_time)
        assert await child.kill_tree() == ()
        assert process.is_alive(identity)
        process.send(identity, signal.SIGTERM)
        with trio.fail_after(PATIENCE_SECONDS):
            while process.is_alive(identity):  # noqa: ASYNC110 - it is nobody's child here
                await trio.sleep(0.01)

    trio.run(run)
