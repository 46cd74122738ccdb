"""The server's children: started through a gate, written down first, ended with their trees.

The decisions on process trees and files: `host/children/<worker epoch>.json` holds pid, start time,
boot id, process group and kind, is written and synced before the child executes anything, and is
removed when the child was reaped and nothing of its tree is left. Whoever takes over ends what the
files name.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

import trio
from pydantic import ValidationError

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid, ProtocolViolation
from pi_workflows.base.limits import SHELLS_MAX, TERMINATE_GRACE_MS
from pi_workflows.definition.document import Document
from pi_workflows.server import process
from pi_workflows.server.paths import WORKER_VARIABLE
from pi_workflows.server.process import Facts, Identity, Tree

Kind: TypeAlias = Literal["run", "resolve", "validate"]

_GATE: Final = str(Path(__file__).with_name("gate.py"))
_OWN_VARIABLES: Final = "PI_WORKFLOWS_"
_CLIENT_VARIABLES: Final = ("PATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TZ")
_MODE: Final = 0o600


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended: one of the two is set.

    Attributes:
        code: Its exit status.
        signal: The name of the signal that ended it.
    """

    code: int | None = None
    signal: str | None = None

    def __str__(self) -> str:
        """Return what people read."""
        return f"signal {self.signal}" if self.signal else f"exit status {self.code}"


class _Shell(Document):
    """A shell step's process, which leads a group of its own."""

    pid: int
    start_time: str


class _Entry(Document):
    """A file of the registry."""

    pid: int
    start_time: str
    boot_id: str
    process_group: int
    kind: str
    shells: tuple[_Shell, ...] = ()

    @property
    def identities(self) -> list[Identity]:
        """The child and its shells."""
        shells = [Identity(shell.pid, shell.start_time) for shell in self.shells]
        return [Identity(self.pid, self.start_time), *shells]


def environment(
    server: Mapping[str, str], client: Mapping[str, str] | None, worker_epoch: str
) -> dict[str, str]:
    """Return a child's environment (the decision on the runner's environment).

    Args:
        server: The server's own environment at its start.
        client: The variables that are the launching client's to say; None when it said nothing.
        worker_epoch: The child, as its cookie.

    Returns:
        The server's variables without this product's, the client's in their place, the cookie.
    """
    kept = {name: value for name, value in server.items() if not name.startswith(_OWN_VARIABLES)}
    if client is not None:
        kept = {name: value for name, value in kept.items() if name not in _CLIENT_VARIABLES}
        # What holds NUL can be no process's variable.
        given = {name: client[name] for name in _CLIENT_VARIABLES if name in client}
        kept.update((name, value) for name, value in given.items() if "\0" not in value)
    kept[WORKER_VARIABLE] = worker_epoch
    return kept


class Child:
    """A process of ours that leads a session of its own. However it ends, `kill_tree` must follow.

    Attributes:
        worker_epoch: Which child this is: the value of its cookie, the name of its entry.
        kind: What it does.
        identity: Its pid and start time.
        pidfd: Readable when it has ended; closed by `kill_tree`.
    """

    def __init__(
        self, registry: Registry, worker_epoch: str, kind: Kind, popen: subprocess.Popen[bytes]
    ) -> None:
        """Take over a process that waits at the gate.

        Args:
            registry: Where its entry goes.
            worker_epoch: Its cookie.
            kind: What it does.
            popen: The process, not reaped before `kill_tree`.
        """
        self.worker_epoch = worker_epoch
        self.kind: Kind = kind
        self.pidfd = os.pidfd_open(popen.pid)
        known = process.facts(popen.pid)
        assert known is not None, "a child that nobody reaped is gone"
        self.identity = Identity(popen.pid, known.start_time)
        self._registry = registry
        self._popen = popen
        self._shells: dict[int, Identity] = {}

    @property
    def pid(self) -> int:
        """Its number; it leads the process group and the session of the same number."""
        return self.identity.pid

    @property
    def start_identity(self) -> str:
        """When it started: the boot and the clock ticks since, as its worker row keeps it."""
        return f"{process.boot_id()}/{self.identity.start_time}"

    @property
    def is_alive(self) -> bool:
        """Whether exactly this process runs."""
        return self._popen.returncode is None and process.is_alive(self.identity)

    async def wait(self) -> Exit:
        """Wait until it has ended, and say how. It stays a zombie, which keeps its numbers."""
        if self._popen.returncode is None:
            await trio.lowlevel.wait_readable(self.pidfd)
        return self.exit()

    def exit(self) -> Exit:
        """Return how it ended; it must have."""
        code = self._popen.returncode
        if code is None:
            found = os.waitid(os.P_PIDFD, self.pidfd, os.WEXITED | os.WNOWAIT)
            assert found is not None
            code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        return Exit(code=code) if code >= 0 else Exit(signal=signal.Signals(-code).name)

    def add_shell(self, pid: int, start_time: str, group: int) -> None:
        """Write a shell's process down, synced; only then may it execute its command.

        Raises:
            ProtocolViolation: `shellForeign`: this child's session has no such process;
                `shellCount`: too many.
        """
        known = process.facts(pid)
        named = Facts(is_dead=False, group=pid, session=self.pid, start_time=start_time)
        if known != named or group != pid:
            raise ProtocolViolation("a shell that is no process of its runner", code="shellForeign")
        if len(self._shells) >= SHELLS_MAX:
            raise ProtocolViolation(f"more than {SHELLS_MAX} shells at once", code="shellCount")
        self._shells[pid] = Identity(pid, start_time)
        self.record()

    def drop_shell(self, pid: int) -> None:
        """Forget a shell that has ended; the next entry leaves it out."""
        self._shells.pop(pid, None)

    def record(self) -> None:
        """Write the registry entry and sync it."""
        shells: list[Json] = [
            {"pid": shell.pid, "startTime": shell.start_time} for shell in self._shells.values()
        ]
        self._registry.write(
            self.worker_epoch,
            {
                "pid": self.pid,
                "startTime": self.identity.start_time,
                "bootId": process.boot_id(),
                "processGroup": self.pid,
                "kind": self.kind,
                "shells": shells,
            },
        )

    async def kill_tree(self, *, grace_ms: int = TERMINATE_GRACE_MS) -> tuple[Identity, ...]:
        """End it with everything that it started, reap it, take it out of the registry.

        Repeating it is harmless; it cannot be cancelled.

        Args:
            grace_ms: How long its processes may take to leave by themselves.

        Returns:
            What is left in spite of it; then the entry stays, for whoever takes over.
        """
        is_reaped = self._popen.returncode is not None
        leaders = () if is_reaped else (self.identity, *self._shells.values())
        tree = Tree(frozenset({self.worker_epoch}), leaders)
        left = await process.end(tree, grace_ms=grace_ms)
        self._reap()
        if not left:
            self._registry.forget(self.worker_epoch)
        return left

    def _reap(self) -> None:
        """Give the ended process's number back."""
        if self._popen.poll() is not None and self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1


class Registry:
    """Where the server's children are written down."""

    def __init__(self, directory: Path) -> None:
        """Use a directory.

        Args:
            directory: `host/children`, which exists and is ours alone.
        """
        self._directory = directory

    def spawn(
        self,
        argv: Sequence[str],
        *,
        kind: Kind,
        worker_epoch: str,
        env: Mapping[str, str],
        cwd: str,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
        channel: int | None = None,
    ) -> Child:
        """Start a program in a session of its own. It executes nothing before its entry is on disk.

        Args:
            argv: The program's absolute path and its arguments.
            kind: What it does.
            worker_epoch: A new random identity; also the cookie, which the environment must carry.
            env: Its whole environment.
            cwd: Its working directory.
            stdin: A descriptor, which stays the caller's.
            stdout: As `stdin`.
            stderr: As `stdin`.
            channel: The descriptor that becomes number 3; stays the caller's.

        Returns:
            The child. Nothing else of the server's descriptors is open in it.

        Raises:
            OSError: The program, the directory or the entry's file; nothing is left behind.
        """
        assert env.get(WORKER_VARIABLE) == worker_epoch, (
            "nobody would find a child without its cookie"
        )
        gate, opener = os.pipe()
        inherited = (gate,) if channel is None else (gate, channel)
        number = -1 if channel is None else channel
        command = [sys.executable, "-I", "-S", _GATE, str(gate), str(number), *argv]
        popen: subprocess.Popen[bytes] | None = None
        try:
            popen = subprocess.Popen(  # noqa: S603 - no shell, and our own program
                command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=env,
                cwd=cwd,
                pass_fds=inherited,
                start_new_session=True,
            )
            child = Child(self, worker_epoch, kind, popen)
            child.record()
            os.write(opener, b"\n")
        except BaseException:
            if popen is not None:
                popen.kill()
                popen.wait()
            self.forget(worker_epoch)
            raise
        finally:
            os.close(gate)
            os.close(opener)
        return child

    async def recover(self, worker_epochs: Collection[str]) -> tuple[Identity, ...]:
        """End every process that an earlier server left behind (the decision on taking over).

        Args:
            worker_epochs: Children that the database still counts as running.

        Returns:
            What is left in spite of it; then the entries stay.
        """
        entries = {path.stem: _read_entry(path) for path in self._directory.glob("*.json")}
        leaders = [
            leader
            for entry in entries.values()
            if entry is not None and entry.boot_id == process.boot_id()
            for leader in entry.identities
        ]
        tree = Tree(frozenset({*entries, *worker_epochs}), tuple(leaders))
        left = await process.end(tree) if tree.worker_epochs else ()
        if not left:
            for path in self._directory.iterdir():
                path.unlink()
        return left

    def write(self, worker_epoch: str, entry: Mapping[str, Json]) -> None:
        """Replace an entry, synced. Raises OSError when the disk refuses it."""
        path = self._path(worker_epoch)
        scratch = path.with_suffix(".new")
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _MODE)
        try:
            os.write(descriptor, canonical.encode(dict(entry)) + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        scratch.replace(path)

    def forget(self, worker_epoch: str) -> None:
        """Remove an entry, if it is there."""
        path = self._path(worker_epoch)
        path.unlink(missing_ok=True)
        path.with_suffix(".new").unlink(missing_ok=True)

    def _path(self, worker_epoch: str) -> Path:
        assert worker_epoch.replace("-", "").isalnum(), worker_epoch
        return self._directory / f"{worker_epoch}.json"


def _read_entry(path: Path) -> _Entry | None:
    """Return an entry; None when it is not one, which leaves its name."""
    try:
        return _Entry.model_validate(canonical.decode(path.read_bytes()), strict=False)
    except (OSError, PayloadInvalid, ValidationError):
        return None
