"""The way to the server: where it is, how it is started, and how a question is put to it."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import LimitExceeded, PayloadInvalid, Refused, WrongUsage
from pi_workflows.base.version import package_version
from pi_workflows.cli.failure import unsent
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.reader import Reader
from pi_workflows.client.blocking import Client
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.wire import Payload
from pi_workflows.server.paths import STATE_DIR_VARIABLE, StateDirectory, locate
from pi_workflows.server.start import start_detached


def state_directory() -> StateDirectory:
    """Return the state directory of this environment, which need not exist.

    Raises:
        WrongUsage: `PI_WORKFLOWS_STATE_DIR` is empty, or is not an absolute path.
    """
    if os.environ.get(STATE_DIR_VARIABLE) == "":
        # A script whose own variable is unset must not reach the person's real state.
        raise WrongUsage(
            f"{STATE_DIR_VARIABLE} is empty.",
            code="stateDirEmpty",
            field=STATE_DIR_VARIABLE,
            hint="Give a directory, or unset it for the default one.",
        )
    try:
        return StateDirectory(locate(os.environ))
    except Refused as error:
        raise unsent(error) from None


def client(invocation: Invocation, *, may_start: bool = True) -> Client:
    """Return a client that connects when it is entered.

    Args:
        invocation: Who asks.
        may_start: Start a server when there is none.

    Raises:
        WrongUsage: No socket can have that path.
    """
    state = state_directory()
    try:
        endpoint = Endpoint(
            socket_path=str(state.socket),
            package_version=package_version(),
            client_id=invocation.client_id,
            starter=partial(_start, state.root) if may_start else None,
        )
    except Refused as error:
        raise unsent(error) from None
    return Client(endpoint)


def _start(directory: Path) -> None:
    """Start a server and wait until it is ready."""
    start_detached(directory)


def ask(
    server: Reader,
    operation: Operation,
    payload: Payload | Json,
    *,
    run_id: str | None = None,
    expected_revision: int | None = None,
    key: str | None = None,
) -> Reply:
    """Ask for something that has to succeed.

    Args:
        server: The connected client, or a file.
        operation: What to do.
        payload: Its payload.
        run_id: The run, where the operation is about one.
        expected_revision: The revision at which the resource must still be.
        key: The idempotency key of a command.

    Returns:
        The reply.

    Raises:
        WrongUsage: Our own checks held it back.
        Refused: The server refused it.
        Unavailable: As `Client.request`.
        OutcomeUnknown: As `Client.request`.
    """
    try:
        reply = server.request(
            operation, payload, run_id=run_id, expected_revision=expected_revision, key=key
        )
    except (PayloadInvalid, LimitExceeded) as error:
        raise unsent(error) from None
    return reply.done()
