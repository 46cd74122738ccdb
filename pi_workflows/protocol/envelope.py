"""The four messages of `pi-workflows.client.v1`.

A server writes hello, responses and events; a client requests.

The client protocol, "Envelope". Payloads and receipts are any JSON here: stored canonical bytes
stand in them as `canonical.fragment`, and `operations` says which model reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, Literal, TypeAlias, cast

from pydantic import AfterValidator, Strict
from pydantic_core import PydanticCustomError

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome, PayloadInvalid, ProtocolViolation
from pi_workflows.base.limits import ERROR_CHARS_MAX
from pi_workflows.protocol import frames
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.wire import AnyJson, Id, Maybe, Revision, Text, WireModel

SCHEMA: Final = "pi-workflows.client.v1"


def _one_line(value: str) -> str:
    """Refuse an error that is empty, too long, or more than one line."""
    if not value or len(value) > ERROR_CHARS_MAX or len(value.splitlines()) > 1:
        limit = {"limit": ERROR_CHARS_MAX}
        raise PydanticCustomError(
            "error_line", "must be one line of at most {limit} characters", limit
        )
    return value


class EventKind(StrEnum):
    """What a subscription tells."""

    RUNS = "runs"
    """The run list changed: its first page."""

    RUN_SNAPSHOT = "run_snapshot"
    """A whole run view."""

    RUN_PATCH = "run_patch"
    """What changed in a run view: a `RunPatch`."""

    SESSION_SNAPSHOT = "session_snapshot"
    """A whole session view."""

    UNAVAILABLE = "unavailable"
    """The subscription ended, or waits for its connection: a `SubscriptionFailure`."""


class Hello(WireModel):
    """The server's first message."""

    type: Literal["hello"] = "hello"
    connection_id: Id
    package_version: Text


class Request(WireModel):
    """What a client asks for. A resend has a new `request_id` and the same everything else."""

    type: Literal["request"] = "request"
    request_id: Id
    client_id: Id
    operation: Annotated[Operation, Strict(strict=False)]
    idempotency_key: Id
    payload: AnyJson
    run_id: Maybe[Id] = None
    expected_revision: Maybe[Revision] = None


class Response(WireModel):
    """The answer to one request. A refusal's receipt is a `Refusal`, whose code is for programs."""

    type: Literal["response"] = "response"
    request_id: Id
    outcome: Annotated[Outcome, Strict(strict=False)]
    revision: Maybe[Revision] = None
    receipt: Maybe[AnyJson] = None
    error: Maybe[Annotated[str, AfterValidator(_one_line)]] = None


class Event(WireModel):
    """News of one subscription."""

    type: Literal["event"] = "event"
    subscription_id: Id
    event: Annotated[EventKind, Strict(strict=False)]
    payload: AnyJson
    revision: Maybe[Revision] = None
    run_id: Maybe[Id] = None


FromServer: TypeAlias = Hello | Response | Event
"""What a client may get."""

_FROM_SERVER: Final[Mapping[str, type[FromServer]]] = {
    "hello": Hello,
    "response": Response,
    "event": Event,
}


def encode(message: FromServer | Request) -> bytes:
    """Write a frame of this protocol, with its line feed. Raises as `frames.encode` does."""
    return frames.encode({"schema": SCHEMA, **message.document()})


def decode_request(frame: frames.Frame) -> Request:
    """Read a frame that the server got.

    Args:
        frame: What FrameReader gave.

    Returns:
        The request; its payload is not yet checked (`operations.read_payload`).

    Raises:
        ProtocolViolation: Another schema, no request, an unknown operation, or an envelope that
            does not fit.
    """
    body = frame.body(SCHEMA)
    if body.get("type") != "request":
        raise ProtocolViolation("a client sent something other than a request", code="notRequest")
    return cast("Request", _parse(Request, body))


def decode_from_server(frame: frames.Frame) -> FromServer:
    """Read a frame that a client got.

    Args:
        frame: What FrameReader gave.

    Returns:
        The message.

    Raises:
        ProtocolViolation: Another schema, an unknown type, or an envelope that does not fit.
    """
    body = frame.body(SCHEMA)
    kind = body.get("type")
    model = _FROM_SERVER.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise ProtocolViolation("a message of unknown type", code="unknownType")
    return cast("FromServer", _parse(model, body))


def _parse(model: type[WireModel], body: dict[str, Json]) -> WireModel:
    """Read an envelope of a known type."""
    try:
        return model.parse(body)
    except PayloadInvalid as error:
        # A field that we know may be named; an unknown one is the peer's own word.
        code = "unknownOperation" if error.field == "operation" else "envelopeInvalid"
        raise ProtocolViolation("an envelope does not fit its model", code=code) from None
