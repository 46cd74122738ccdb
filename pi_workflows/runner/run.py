"""`--mode run`: one process serves one generation of one run (the runner protocol).

Standard input is empty, both outputs are one pipe that the server drains, descriptor 3 is the
private channel. The first frame is the launch. Every source file is verified before any of it is
executed.
"""

from __future__ import annotations

import io
import os
import socket
import sys
import traceback
from typing import Final, NoReturn

import trio

from pi_workflows.authoring.loading import Loaded, load
from pi_workflows.authoring.modules import found
from pi_workflows.base.errors import ProblemsFound, ProtocolViolation
from pi_workflows.protocol.runner import Failed, Launch, Ready
from pi_workflows.protocol.wire import error_line
from pi_workflows.runner.caught import Caught
from pi_workflows.runner.channel import Channel
from pi_workflows.runner.ending import EXIT_DONE, EXIT_LOST, leave, say
from pi_workflows.runner.session import Session
from pi_workflows.runner.sources import require_mounts

_CHANNEL: Final = 3


def main() -> NoReturn:
    """Serve one launch and end the process."""
    exit_code = EXIT_LOST
    with Caught() as caught:
        exit_code = _serve()
    if caught.error is not None:
        # Our bug, or an interruption: for the diagnostic output only.
        traceback.print_exception(caught.error)
    leave(exit_code)


def _serve() -> int:
    """Read the launch, load the definition, run it; return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A killed runner's last lines are the ones that are looked for.
            stream.reconfigure(line_buffering=True)
    os.set_inheritable(_CHANNEL, False)
    channel = Channel(socket.socket(fileno=_CHANNEL))
    try:
        launch = channel.first()
    except ProtocolViolation as error:
        say(f"the launch breaks the protocol: {error.message}")
        return EXIT_LOST
    if not isinstance(launch, Launch):
        say("the channel closed before a launch")
        return EXIT_LOST
    try:
        loaded = _load(launch)
    except ProblemsFound as error:
        channel.send(_failure(error))
        return EXIT_DONE
    channel.send(Ready(definition_digest=launch.definition_digest, mounts=launch.mounts))
    return trio.run(_session, channel, launch, loaded)


async def _session(channel: Channel, launch: Launch, loaded: Loaded) -> int:
    return await Session(channel, launch, loaded).run()


def _load(launch: Launch) -> Loaded:
    """Load the definition from the hashed bytes; ProblemsFound when it is not the launched one."""
    if not launch.source_files:
        raise found("workflowSourceChanged", "sourceFiles", "names no file")
    root = launch.source_files[0].path
    loaded = load(root, launch.source_files, launch.definition_digest)
    require_mounts(loaded, launch.mounts)
    return loaded


def _failure(error: ProblemsFound) -> Failed:
    """Say why nothing ran."""
    message = error_line(error.message.encode(errors="replace").decode())
    match error.reason_code:
        case "workflowSourceChanged":
            return Failed(code="workflowSourceChanged", message=message)
        case "definitionChanged":
            return Failed(code="definitionChanged", message=message)
        case _:
            return Failed(code="importError", message=message)
