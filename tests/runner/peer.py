"""A scripted server: it starts the real runner over a real socket pair and plays its peer."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pi_workflows.authoring.loading import load
from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.protocol import frames
from pi_workflows.protocol.content import (
    Assembly,
    BlobRef,
    ContentGet,
    ContentMissing,
    ContentPut,
    JsonRef,
    Ref,
    parts,
)
from pi_workflows.protocol.proposals import (
    BeginEffect,
    Command,
    EffectReservation,
    EffectStatus,
    Failure,
    FinishRun,
    Propose,
    Requeue,
    ReserveEffect,
    SettleEffect,
    WaitForInput,
)
from pi_workflows.protocol.runner import (
    Child,
    FromRunner,
    FromServer,
    Launch,
    LaunchLimits,
    Log,
    Ready,
    Result,
    Resume,
    Stop,
    decode_from_runner,
    encode,
)
from pi_workflows.runner.sources import mounts_of

RUN_ID = "test-run"
# Nothing here takes that long; it is what a hang costs.
PATIENCE_SECONDS = 30.0
_FD_MIN = 64

T = TypeVar("T")
LEAVING = (FinishRun, Requeue, WaitForInput)


def of_kind(commands: Sequence[Command], kind: type[T]) -> list[T]:
    """Return the commands of one kind."""
    return [command for command in commands if isinstance(command, kind)]


def launch_of(
    path: Path,
    run_input: Json,
    *,
    resume: Resume | None = None,
    ahead_max: int = 16,
    input_ref: Ref | None = None,
    mode: str = "headless",
) -> Launch:
    """Return the launch of a workflow file as the resolver would have described it."""
    loaded = load(path)
    loaded.close()
    return Launch(
        worker_epoch="epoch",
        run_id=RUN_ID,
        generation=1,
        tag="start" if resume is None else "resume",
        project_path=str(path.parent),
        source_files=loaded.source_files,
        mounts=mounts_of(loaded),
        definition_digest=loaded.workflow.digest,
        input=input_ref or JsonRef(value=run_input),
        launch_options={"executionMode": mode},
        resume=resume,
        limits=LaunchLimits(output_bytes_max=8 * 1024 * 1024, proposals_ahead_max=ahead_max),
    )


@dataclass
class Peer:
    """The server's side of one runner."""

    channel: socket.socket
    pid: int
    output: Path
    cookie: str
    commands: list[Command] = field(default_factory=list[Command])
    proposals: list[Propose] = field(default_factory=list[Propose])
    children: list[Child] = field(default_factory=list[Child])
    logs: list[str] = field(default_factory=list[str])
    contents: dict[str, Blob] = field(default_factory=dict[str, Blob])
    effects: dict[str, EffectReservation] = field(default_factory=dict[str, EffectReservation])
    _reader: frames.FrameReader = field(default_factory=frames.FrameReader)
    _assembly: Assembly | None = None
    _exit_code: int | None = None
    _stream: Iterator[FromRunner] | None = None

    @classmethod
    def start(cls, output: Path, cookie: str) -> Peer:
        """Start a runner; what it prints goes to a file, and its processes carry the cookie."""
        ours, theirs = socket.socketpair()
        # Above 3, so that the spawn's dup2 gives a descriptor that exec keeps.
        high = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD_CLOEXEC, _FD_MIN)
        theirs.close()
        environment = dict(os.environ, PI_WORKFLOWS_WORKER=cookie, PYTHONPATH=str(_repository()))
        # Compiling every module anew would be most of what a test takes.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "pi_workflows.runner", "--mode", "run"],
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(output), os.O_WRONLY | os.O_CREAT, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
                (os.POSIX_SPAWN_DUP2, high, 3),
            ],
            setsid=True,
        )
        os.close(high)
        ours.settimeout(PATIENCE_SECONDS)
        return cls(ours, pid, output, cookie)

    def send(self, message: FromServer) -> None:
        """Send a message."""
        self.channel.sendall(encode(message))

    def messages(self) -> Iterator[FromRunner]:
        """Yield what the runner sends until it closes the stream; contents and logs are kept."""
        while data := self._receive():
            for frame in self._reader.feed(data):
                message = decode_from_runner(frame)
                match message:
                    case ContentPut():
                        self._put(message)
                    case ContentGet():
                        self._get(message)
                    case Log():
                        self.logs.append(message.text)
                    case Child():
                        self.children.append(message)
                        yield message
                    case _:
                        yield message

    def next(self, kind: type[T]) -> T:
        """Return the next message, which is of this kind."""
        message = self.next_or_end()
        assert isinstance(message, kind), (message, self.printed())
        return message

    def next_or_end(self) -> FromRunner | None:
        """Return the next message, or None when the runner closes the stream."""
        if self._stream is None:
            self._stream = self.messages()
        return next(self._stream, None)

    def propose(self) -> Propose:
        """Return the next proposal."""
        proposal = self.next(Propose)
        self.proposals.append(proposal)
        self.commands += proposal.commands
        return proposal

    def answer(
        self,
        proposal: Propose,
        outcome: str = "accepted",
        *,
        values: EffectReservation | None = None,
        detail: Failure | None = None,
    ) -> None:
        """Answer a proposal."""
        self.send(
            Result.model_validate(
                {
                    "seq": proposal.seq,
                    "outcome": outcome,
                    "run_revision": proposal.seq,
                    "values": values,
                    "detail": detail,
                }
            )
        )

    def begin(self, launch: Launch) -> Ready:
        """Launch and return the runner's readiness."""
        self.send(launch)
        return self.next(Ready)

    def serve(self, until: Callable[[Command], bool] = lambda _: False) -> list[Command]:
        """Accept whatever the runner does, until a command that `until` names or until it leaves.

        Effects live in `effects`, children are registered at once. Returns all commands so far.
        """
        while (message := self.next_or_end()) is not None:
            match message:
                case Propose():
                    self.proposals.append(message)
                    self.commands += message.commands
                    stops = [command for command in message.commands if until(command)]
                    self.accept(message)
                    if stops:
                        return self.commands
                case Child(state="starting"):
                    self.send(message.model_copy(update={"state": "registered"}))
                case _:
                    continue
        return self.commands

    def accept(self, proposal: Propose) -> None:
        """Accept a proposal, keeping the effects that it is about."""
        values: EffectReservation | None = None
        for command in proposal.commands:
            match command:
                case ReserveEffect():
                    values = self.effects.setdefault(
                        command.effect_type,
                        EffectReservation(
                            effect_id=f"effect-{command.effect_type}",
                            status="pending",
                            attempt_count=0,
                        ),
                    )
                case BeginEffect():
                    self._change(
                        command.effect_id, "applying", attempt_count=command.attempt_number
                    )
                case SettleEffect(outcome="uncertain"):
                    self._change(command.effect_id, "pending")
                case SettleEffect():
                    status: EffectStatus = "applied" if command.outcome == "applied" else "rejected"
                    self._change(command.effect_id, status, result=command.result)
                case _:
                    continue
        self.answer(proposal, values=values)

    def value(self, reference: Ref | None) -> Json:
        """Return the value that a reference stands for."""
        match reference:
            case JsonRef():
                return reference.value
            case BlobRef():
                return canonical.decode(self.contents[reference.sha256].content)
            case None:
                raise AssertionError

    def wait(self) -> int:
        """Wait for the runner's end and return its exit status; minus the signal that killed it."""
        if self._exit_code is None:
            descriptor = os.pidfd_open(self.pid)
            try:
                ready, _, _ = select.select([descriptor], [], [], PATIENCE_SECONDS)
                assert ready, f"the runner does not end\n{self.printed()}"
            finally:
                os.close(descriptor)
            _, status = os.waitpid(self.pid, 0)
            self._exit_code = os.waitstatus_to_exitcode(status)
        return self._exit_code

    def stop(self, reason: str, grace_ms: int = 5_000) -> None:
        """Send a stop."""
        self.send(Stop.model_validate({"reason": reason, "grace_ms": grace_ms}))

    def printed(self) -> str:
        """Return what the runner printed."""
        return self.output.read_text() if self.output.exists() else ""

    def close(self) -> list[int]:
        """End the runner if it still runs, and return what was left of its processes, ended too."""
        self.channel.close()
        if self._exit_code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._exit_code = -signal.SIGKILL
        left = processes_with(self.cookie)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return left

    def _change(
        self,
        effect_id: str,
        status: EffectStatus,
        *,
        attempt_count: int | None = None,
        result: Ref | None = None,
    ) -> None:
        for key, known in self.effects.items():
            if known.effect_id == effect_id:
                self.effects[key] = EffectReservation(
                    effect_id=effect_id,
                    status=status,
                    attempt_count=known.attempt_count if attempt_count is None else attempt_count,
                    result=result,
                )

    def _receive(self) -> bytes:
        try:
            return self.channel.recv(1 << 20)
        except ConnectionResetError:
            return b""

    def _put(self, part: ContentPut) -> None:
        if self._assembly is None:
            self._assembly = Assembly(part)
        blob = self._assembly.add(part)
        if blob is not None:
            self.contents[blob.hex] = blob
            self._assembly = None

    def _get(self, wanted: ContentGet) -> None:
        blob = self.contents.get(wanted.sha256)
        if blob is None:
            self.send(ContentMissing(sha256=wanted.sha256, error="not named by this run"))
            return
        for part in parts(blob):
            self.send(part)


def _repository() -> Path:
    return Path(__file__).parents[2]


def processes_with(cookie: str) -> list[int]:
    """Return the processes that carry a cookie in their environment."""
    wanted = f"PI_WORKFLOWS_WORKER={cookie}".encode()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            if wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found
