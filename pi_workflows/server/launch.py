"""The launch of a runner: its first frame, which is also what is stored of it, and its process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import trio

from pi_workflows.base.blob import Blob
from pi_workflows.base.limits import PROPOSALS_AHEAD_MAX, VALUE_BYTES_MAX
from pi_workflows.base.sql import Read
from pi_workflows.protocol import runner
from pi_workflows.protocol.content import Ref
from pi_workflows.server.claims import HeldRun
from pi_workflows.server.launch_options import LaunchOptions
from pi_workflows.server.process import Identity
from pi_workflows.server.registry import Exit, Registry, environment
from pi_workflows.views.launch import LaunchFacts, launch_facts

# What a runner gets of its interpreter: `-P` keeps the project's files off the import path.
_PROGRAM: Final = ("-P", "-m", "pi_workflows.runner", "--mode", "run")


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch that is ready to be sent.

    Attributes:
        worker_epoch: The new runner.
        frame: The launch frame, with its line feed.
        envelope: The stored form: exactly the frame.
        ready: The only word after which the runner may propose.
        named: The values that the frame names.
        step_total: Steps that the run has.
        project_path: The runner's working directory.
        client: The launching client's variables; None when it said nothing about them.
    """

    worker_epoch: str
    frame: bytes
    envelope: Blob
    ready: runner.Ready
    named: tuple[Ref, ...]
    step_total: int
    project_path: str
    client: Mapping[str, str] | None


class Process(Protocol):
    """A runner's process; a `Child` is one."""

    @property
    def pid(self) -> int:
        """Its number."""
        ...

    @property
    def start_identity(self) -> str:
        """What tells it from another process of that number."""
        ...

    @property
    def is_alive(self) -> bool:
        """Whether exactly this process runs."""
        ...

    def add_shell(self, pid: int, start_time: str, group: int) -> None:
        """Write a shell's process down, synced. Raises ProtocolViolation or OSError."""
        ...

    def drop_shell(self, pid: int) -> None:
        """Forget a shell that has ended."""
        ...

    async def wait(self) -> Exit:
        """Wait until it has ended, and say how."""
        ...

    def exit(self) -> Exit:
        """Return how it ended; it must have."""
        ...

    async def kill_tree(self) -> tuple[Identity, ...]:
        """End it with everything that it started; return what is left."""
        ...


@dataclass(frozen=True, slots=True)
class Started:
    """A runner's process and the server's ends of what connects it.

    Attributes:
        process: The process.
        stream: The private channel.
        output: What it and its shells write.
    """

    process: Process
    stream: trio.abc.Stream
    output: trio.abc.ReceiveStream


class Starter(Protocol):
    """Starts the process of a launch."""

    def __call__(self, launched: Launched, /) -> Started:
        """Start it. Raises OSError when the system refuses."""
        ...


def launched(read: Read, run: HeldRun, worker_epoch: str) -> Launched:
    """Return the launch of a run that was just claimed.

    Args:
        read: One consistent read, after the claim.
        run: The run.
        worker_epoch: The new runner.

    Returns:
        The launch.

    Raises:
        LimitExceeded: `frameTooLarge`.
        NotFound: There is no such run.
        Corrupt: What is stored of the run's launch is not one.
    """
    facts = launch_facts(read, run.run_id)
    options = read.document(LaunchOptions.parse, facts.launch_options_hash)
    launch = runner.Launch(
        worker_epoch=worker_epoch,
        run_id=run.run_id,
        generation=run.permit.generation,
        tag=facts.tag,
        project_path=facts.project_path,
        source_files=options.source_files,
        mounts=facts.mounts,
        definition_digest=facts.definition_digest,
        input=facts.run_input,
        # The environment reaches the process and no envelope; the files have a member of their own.
        launch_options={"executionMode": facts.execution_mode},
        resume=facts.resume,
        limits=runner.LaunchLimits(
            output_bytes_max=VALUE_BYTES_MAX, proposals_ahead_max=PROPOSALS_AHEAD_MAX
        ),
    )
    frame = runner.encode(launch)
    return Launched(
        worker_epoch=worker_epoch,
        frame=frame,
        envelope=Blob.of(frame.removesuffix(b"\n"), "application/json"),
        ready=runner.Ready(definition_digest=facts.definition_digest, mounts=facts.mounts),
        named=_named(facts),
        step_total=facts.step_total,
        project_path=facts.project_path,
        client=options.environment or None,
    )


def _named(facts: LaunchFacts) -> tuple[Ref, ...]:
    """Return every value of a launch."""
    if facts.resume is None:
        return (facts.run_input,)
    mounts = (facts.resume.mounts or {}).values()
    left = tuple(mount.output for mount in mounts if mount.output is not None)
    opened = facts.resume.open
    accepted = (opened.accepted,) if opened is not None and opened.accepted is not None else ()
    settings = (scope.value for scope in facts.resume.settings or ())
    return (facts.run_input, *facts.resume.outputs.values(), *left, *accepted, *settings)


class RunnerProgram:
    """Starts runners: `python -m pi_workflows.runner --mode run` in the run's project.

    Args:
        registry: Where they are written down.
        variables: The server's environment at its start.
    """

    def __init__(self, registry: Registry, variables: Mapping[str, str]) -> None:
        self._registry = registry
        self._variables = variables

    def __call__(self, launched: Launched, /) -> Started:
        """Start the process of a launch: a socket is its descriptor 3, one pipe takes its output.

        Raises:
            OSError: The system refused, or the project directory cannot be entered.
        """
        ours, theirs = socket.socketpair()
        output_out, output_in = os.pipe()
        try:
            child = self._registry.spawn(
                [sys.executable, *_PROGRAM],
                kind="run",
                worker_epoch=launched.worker_epoch,
                env=environment(self._variables, launched.client, launched.worker_epoch),
                cwd=launched.project_path,
                stdout=output_in,
                stderr=subprocess.STDOUT,
                channel=theirs.fileno(),
            )
        except OSError:
            ours.close()
            os.close(output_out)
            raise
        finally:
            theirs.close()
            os.close(output_in)
        stream = trio.SocketStream(trio.socket.from_stdlib_socket(ours))
        return Started(child, stream, trio.lowlevel.FdStream(output_out))
