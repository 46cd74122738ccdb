"""A client's state and the server's side of its conversation, without a socket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.protocol import envelope
from pi_workflows.protocol.connection import ClientState
from pi_workflows.protocol.envelope import Event, EventKind, Hello, Request, Response
from pi_workflows.protocol.frames import FrameReader

VERSION: Final = "1.2.3"


def _counting() -> Iterator[int]:
    """Count from 1."""
    number = 0
    while True:
        number += 1
        yield number


def new_state() -> ClientState:
    """Return a new client whose identities count from 1."""
    numbers = _counting()
    return ClientState(
        client_id="client-1",
        package_version=VERSION,
        new_id=lambda prefix: f"{prefix}-{next(numbers)}",
    )


def greet(state: ClientState, version: str = VERSION) -> None:
    """Connect the client to a server of this version."""
    state.connected()
    state.receive(envelope.encode(Hello(connection_id="connection-1", package_version=version)))


def ready() -> ClientState:
    """Return a connected client."""
    state = new_state()
    greet(state)
    return state


def sent(state: ClientState) -> list[Request]:
    """Return the requests that the client sends now."""
    return [envelope.decode_request(frame) for frame in FrameReader().feed(state.outgoing())]


def answer(
    state: ClientState,
    request: Request,
    outcome: Outcome = Outcome.ACCEPTED,
    *,
    receipt: Json = None,
) -> None:
    """Answer a request."""
    response = Response(request_id=request.request_id, outcome=outcome, receipt=receipt)
    state.receive(envelope.encode(response))


def tell(state: ClientState, subscription_id: str, revision: int, **change: object) -> None:
    """Send a snapshot."""
    event = Event(
        subscription_id=subscription_id,
        event=EventKind.RUN_SNAPSHOT,
        payload={"revision": revision},
        revision=revision,
        run_id="build-1",
    )
    state.receive(envelope.encode(event.model_copy(update=change)))
