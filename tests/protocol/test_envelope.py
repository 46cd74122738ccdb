"""The four messages of the client protocol, byte for byte, and what is no message of it."""

from __future__ import annotations

from typing import cast

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome, ProtocolViolation
from pi_workflows.base.limits import ENVELOPE_ID_BYTES_MAX, ERROR_CHARS_MAX, REVISION_MAX
from pi_workflows.protocol import envelope, frames
from pi_workflows.protocol.envelope import Event, EventKind, FromServer, Hello, Request, Response
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.run_patch import Delta, PatchOperation, RunPatch

_REQUEST: dict[str, Json] = {
    "schema": "pi-workflows.client.v1",
    "type": "request",
    "requestId": "request-1",
    "clientId": "cli-1",
    "operation": "run.pause",
    "idempotencyKey": "key-1",
    "payload": {},
    "runId": "build-1",
    "expectedRevision": 7,
}

_RESPONSE: dict[str, Json] = {
    "schema": "pi-workflows.client.v1",
    "type": "response",
    "requestId": "request-1",
    "outcome": "accepted",
    "revision": 3,
}

_MESSAGES: dict[str, FromServer | Request] = {
    "hello": Hello(connection_id="connection-1", package_version="0.1.0"),
    "request": Request(
        request_id="request-1",
        client_id="cli-1",
        operation=Operation.RUN_CANCEL,
        idempotency_key="key-1",
        payload={},
        run_id="build-1",
        expected_revision=7,
    ),
    "request-least": Request(
        request_id="request-1",
        client_id="cli-1",
        operation=Operation.SERVER_STATUS,
        idempotency_key="key-1",
        payload=None,
    ),
    "response": Response(
        request_id="request-1",
        outcome=Outcome.ACCEPTED,
        revision=8,
        receipt=canonical.fragment(b'{"runId":"build-1","status":"cancelled"}'),
    ),
    "response-refused": Response(
        request_id="request-1",
        outcome=Outcome.CLAIM_LOST,
        receipt={"code": "generationChanged"},
        error="The claim moved.",
    ),
    "event-runs": Event(
        subscription_id="subscription-1", event=EventKind.RUNS, payload={"items": []}, revision=1
    ),
    "event-run-snapshot": Event(
        subscription_id="subscription-1",
        event=EventKind.RUN_SNAPSHOT,
        payload=canonical.fragment(b'{"runId":"build-1"}'),
        revision=4,
        run_id="build-1",
    ),
    "event-session-snapshot": Event(
        subscription_id="subscription-1",
        event=EventKind.SESSION_SNAPSHOT,
        payload={"schema": "pi-workflows.session-view.v1", "run": None},
        revision=1,
    ),
    "event-run-patch": Event(
        subscription_id="subscription-1",
        event=EventKind.RUN_PATCH,
        payload=RunPatch(
            run_id="build-1",
            from_revision=4,
            to_revision=5,
            display={"status": "running"},
            live=True,
            possibly_interrupted=False,
            deltas=(
                Delta(
                    revision=5,
                    index=0,
                    target_type="timeline",
                    target_key="trace:tail",
                    patch=(
                        PatchOperation(
                            op="append", path="/items", value=[canonical.fragment(b'{"seq":3}')]
                        ),
                        PatchOperation(op="replace", path="/total", value=3),
                        PatchOperation(op="add", path="/last", value=None),
                        PatchOperation(op="remove", path="/first"),
                    ),
                ),
            ),
        ).document(),
        revision=5,
        run_id="build-1",
    ),
    "event-unavailable": Event(
        subscription_id="subscription-1",
        event=EventKind.UNAVAILABLE,
        payload={"reasonCode": "projection_failed"},
    ),
}


def _frame(value: dict[str, Json]) -> frames.Frame:
    """Return a frame as it would come from a peer."""
    return frames.decode(frames.encode(value)[:-1])


def _code(value: dict[str, Json]) -> str:
    """Return the code with which a request is refused."""
    with pytest.raises(ProtocolViolation) as violation:
        envelope.decode_request(_frame(value))
    return violation.value.reason_code


@pytest.mark.parametrize("name", list(_MESSAGES))
def test_every_message_has_these_bytes(name: str, snapshot: SnapshotAssertion) -> None:
    """The bytes of each kind of message are a contract, and reading them gives them again."""
    written = envelope.encode(_MESSAGES[name])
    assert written.decode() == snapshot
    [frame] = frames.FrameReader().feed(written)
    read: FromServer | Request
    read = (
        envelope.decode_request(frame)
        if name.startswith("request")
        else envelope.decode_from_server(frame)
    )
    assert envelope.encode(read) == written


def test_every_kind_of_event_is_shown() -> None:
    """No kind of event is without its bytes above."""
    assert {m.event for m in _MESSAGES.values() if isinstance(m, Event)} == set(EventKind)


def test_every_outcome_is_readable() -> None:
    """A response may have each outcome of the closed set, and no other."""
    for outcome in Outcome:
        body = {**_RESPONSE, "outcome": outcome.value}
        read = envelope.decode_from_server(_frame(body))
        assert isinstance(read, Response)
        assert read.outcome is outcome
    with pytest.raises(ProtocolViolation):
        envelope.decode_from_server(_frame({**_RESPONSE, "outcome": "unknown"}))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"schema": "pi-workflows.client.v2"}, "wrongSchema"),
        ({"type": "hello"}, "notRequest"),
        ({"type": "response"}, "notRequest"),
        ({"type": "unknown"}, "notRequest"),
        ({"type": 1}, "notRequest"),
        ({"operation": "run.explode"}, "unknownOperation"),
        ({"operation": 1}, "unknownOperation"),
        ({"extra": 1}, "envelopeInvalid"),
        ({"request_id": "request-1"}, "envelopeInvalid"),
        ({"requestId": ""}, "envelopeInvalid"),
        ({"requestId": 1}, "envelopeInvalid"),
        ({"requestId": "x" * (ENVELOPE_ID_BYTES_MAX + 1)}, "envelopeInvalid"),
        ({"clientId": "é" * (ENVELOPE_ID_BYTES_MAX // 2) + "x"}, "envelopeInvalid"),
        ({"runId": ""}, "envelopeInvalid"),
        ({"runId": None}, "envelopeInvalid"),
        ({"expectedRevision": None}, "envelopeInvalid"),
        ({"expectedRevision": -1}, "envelopeInvalid"),
        ({"expectedRevision": 1.5}, "envelopeInvalid"),
        ({"expectedRevision": True}, "envelopeInvalid"),
        ({"expectedRevision": "7"}, "envelopeInvalid"),
        ({"expectedRevision": REVISION_MAX + 1}, "envelopeInvalid"),
    ],
)
def test_an_envelope_that_does_not_fit_is_a_violation(change: Json, code: str) -> None:
    """Each member is checked; nothing is converted, and null is not absence."""
    assert _code({**_REQUEST, **cast("dict[str, Json]", change)}) == code


@pytest.mark.parametrize("member", list(_REQUEST))
def test_members_that_are_missing(member: str) -> None:
    """Every member but `runId` and `expectedRevision` is required."""
    body = {name: value for name, value in _REQUEST.items() if name != member}
    if member in {"runId", "expectedRevision"}:
        assert envelope.decode_request(_frame(body)).operation is Operation.RUN_PAUSE
    else:
        assert _code(body) in {
            "wrongSchema",
            "notRequest",
            "unknownOperation",
            "envelopeInvalid",
        }


@pytest.mark.parametrize("revision", [0, REVISION_MAX])
@pytest.mark.parametrize("text", ["x" * ENVELOPE_ID_BYTES_MAX, "é" * (ENVELOPE_ID_BYTES_MAX // 2)])
def test_the_largest_members_fit(text: str, revision: int) -> None:
    """An identity has up to 256 bytes of UTF-8, a revision up to 2^53-1."""
    body = {**_REQUEST, "runId": text, "expectedRevision": revision}
    request = envelope.decode_request(_frame(body))
    assert (request.run_id, request.expected_revision) == (text, revision)


@pytest.mark.parametrize("error", ["", "two\nlines", "x" * (ERROR_CHARS_MAX + 1), "a\u2028b"])
def test_an_error_is_one_line(error: str) -> None:
    """A response's error is one line of 1 to 1,000 characters."""
    with pytest.raises(ProtocolViolation):
        envelope.decode_from_server(_frame({**_RESPONSE, "error": error}))


@pytest.mark.parametrize("kind", ["request", "unknown", None, ["hello"]])
def test_a_client_takes_what_servers_send(kind: Json) -> None:
    """A client refuses a message that no server writes."""
    with pytest.raises(ProtocolViolation) as violation:
        envelope.decode_from_server(_frame({**_RESPONSE, "type": kind}))
    assert violation.value.reason_code == "unknownType"


@pytest.mark.parametrize("payload", [None, 1, "text", [], {}, {"a": [None]}])
def test_a_payload_is_any_json(payload: Json) -> None:
    """The envelope does not judge the payload; it must only be there."""
    request = envelope.decode_request(_frame({**_REQUEST, "payload": payload}))
    assert request.payload == payload
