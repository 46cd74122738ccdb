"""Every frame that is bad closes the connection that it came over, at once, and no other one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import trio
import trio.testing

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome, ProtocolViolation
from pi_workflows.base.limits import (
    ENVELOPE_ID_BYTES_MAX,
    FRAME_BYTES_MAX,
    FRAME_DEPTH_MAX,
    REVISION_MAX,
)
from pi_workflows.protocol import envelope
from pi_workflows.protocol.envelope import Event, EventKind, Hello, Response
from pi_workflows.protocol.frames import FrameReader
from tests.server.bench import run, server

SECRET: Final = "hunter2"  # noqa: S105 - stands for what nobody may read in a log
IDS: Final = ("requestId", "clientId", "idempotencyKey", "runId")
REQUEST: Final[dict[str, Json]] = {
    "schema": "pi-workflows.client.v1",
    "type": "request",
    "requestId": "request",
    "clientId": "client",
    "operation": "run.list",
    "idempotencyKey": "key",
    "payload": {},
}
_MARK: Final = b'"payload":{}'
_NO_TYPES: Final[tuple[Json, ...]] = ("demand", "Request", "", 1, None, ["request"])
_NO_IDS: Final[tuple[Json, ...]] = (
    "",
    "x" * (ENVELOPE_ID_BYTES_MAX + 1),
    "ä" * (ENVELOPE_ID_BYTES_MAX // 2 + 1),
    1,
    None,
    ["x"],
)
_NO_REVISIONS: Final[tuple[Json, ...]] = (-1, REVISION_MAX + 1, 1.5, "1", True, None, [1])


def frame(**members: Json) -> bytes:
    """Return a request with other members, as a frame."""
    return canonical.encode({**REQUEST, **members}, depth_max=1_000) + b"\n"


def raw(payload: bytes) -> bytes:
    """Return a request with a payload that is written as it stands."""
    return frame().replace(_MARK, b'"payload":' + payload)


def without(name: str) -> bytes:
    """Return a request that lacks a member."""
    members = {key: value for key, value in REQUEST.items() if key != name}
    return canonical.encode(members) + b"\n"


def nested(levels: int) -> bytes:
    """Return a request whose payload is so deep, itself included."""
    return raw(b"[" * levels + b"]" * levels)


def sized(size_bytes: int) -> bytes:
    """Return a request of exactly that size, its line feed included."""
    return raw(b'"' + b"x" * (size_bytes - len(raw(b'""'))) + b'"')


def bad() -> Iterator[tuple[str, bytes, str]]:
    """Yield every kind of bad frame of the client protocol, section 1, with its code."""
    yield "one byte too large", sized(FRAME_BYTES_MAX + 1), "frameTooLarge"
    yield "without an end", b"{" * (FRAME_BYTES_MAX + 1), "frameTooLarge"
    yield "not UTF-8", raw(b'"\xff"'), "notUtf8"
    yield "a surrogate in UTF-8", raw(b'"\xed\xa0\x80"'), "notUtf8"
    yield "an overlong form", raw(b'"\xc0\xaf"'), "notUtf8"
    yield "a lone surrogate", raw(b'"\\ud800"'), "loneSurrogate"
    yield "no JSON", f"{SECRET}\n".encode(), "notJson"
    yield "two values", frame()[:-1] + frame(), "notJson"
    yield "a byte order mark", b"\xef\xbb\xbf" + frame(), "notJson"
    yield "no number", raw(b"NaN"), "numberNotFinite"
    yield "an infinite number", raw(b"1e999"), "numberNotFinite"
    yield "an inexact number", raw(b"9007199254740993"), "numberInexact"
    yield "a member twice", frame().replace(_MARK, _MARK + b"," + _MARK), "duplicateKey"
    yield "too deep", nested(FRAME_DEPTH_MAX), "valueTooDeep"
    yield "far too deep", nested(100_000), "valueTooDeep"
    for value in (b"[]", b'"text"', b"null", b"17", b"true"):
        yield f"the value {value.decode()}", value + b"\n", "notObject"
    yield "a space", frame().replace(_MARK, b'"payload": {}'), "notCanonical"
    yield "a carriage return", frame()[:-1] + b"\r\n", "notCanonical"
    yield "another order", b'{"type":"request",' + without("type")[1:], "notCanonical"
    yield "a needless escape", raw(b'"\\/"'), "notCanonical"
    yield "another form of a number", raw(b"1.0"), "notCanonical"
    yield "no schema", without("schema"), "wrongSchema"
    for schema in ("pi-workflows.client.v2", "pi-workflows.runner.v1", "", 1, None):
        yield f"the schema {schema}", frame(schema=schema), "wrongSchema"
    for kind in _NO_TYPES:
        yield f"the type {kind}", frame(type=kind), "notRequest"
    yield "no type", without("type"), "notRequest"
    for name, message in _from_servers().items():
        yield f"a {name} from a client", envelope.encode(message), "notRequest"
    yield "an unknown member", frame(secret=SECRET), "envelopeInvalid"
    for name in ("requestId", "clientId", "idempotencyKey", "payload"):
        yield f"no {name}", without(name), "envelopeInvalid"
    yield "no operation", without("operation"), "unknownOperation"
    for operation in ("run.mist", "", "RUN.LIST", 1, None):
        yield f"the operation {operation}", frame(operation=operation), "unknownOperation"
    for name in IDS:
        for wrong in _NO_IDS:
            yield f"{name} {wrong!r:.12}", frame(**{name: wrong}), "envelopeInvalid"
    for revision in _NO_REVISIONS:
        yield f"the revision {revision}", frame(expectedRevision=revision), "envelopeInvalid"


def good() -> Iterator[tuple[str, bytes]]:
    """Yield frames that are just not bad; what they ask for may be refused."""
    yield "the largest", sized(FRAME_BYTES_MAX)
    yield "the deepest", nested(FRAME_DEPTH_MAX - 1)
    yield "empty lines", b"\n\n" + frame() + b"\n"
    for name in IDS:
        yield f"the longest {name}", frame(**{name: "x" * ENVELOPE_ID_BYTES_MAX})
        yield (
            f"the longest {name} of other letters",
            frame(**{name: "ä" * (ENVELOPE_ID_BYTES_MAX // 2)}),
        )
    yield "the greatest revision", frame(expectedRevision=REVISION_MAX)
    yield "the least revision", frame(expectedRevision=0)
    yield "any payload", frame(payload=None)


def _from_servers() -> dict[str, Hello | Response | Event]:
    """Return what only a server says."""
    return {
        "hello": Hello(connection_id="c", package_version="1"),
        "response": Response(request_id="r", outcome=Outcome.ACCEPTED),
        "event": Event(subscription_id="s", event=EventKind.RUNS, payload={}),
    }


BAD: Final = {name: (data, code) for name, data, code in bad()}


@pytest.mark.parametrize("name", BAD)
def test_each_bad_frame_has_its_code(name: str) -> None:
    """A server can say in its log what was wrong, in one word that holds nothing of the frame."""
    data, code = BAD[name]
    with pytest.raises(ProtocolViolation) as violation:
        list(map(envelope.decode_request, FrameReader().feed(data)))
    assert violation.value.reason_code == code
    assert SECRET not in violation.value.message


@pytest.mark.parametrize("part", range(4))
def test_bad_frames_harm_nobody_else(state_dir: Path, part: int) -> None:
    """Who sent one gets no reply and loses its subscriptions; the other hears of each change.

    The log has a line, and nothing that was sent is in it.
    """

    async def body() -> None:
        async with server(state_dir) as bench:
            honest = await bench.connect()
            await bench.started(honest)
            await honest.ask("view.run.watch", {"subscriptionId": "s"}, run_id="run-1")
            assert (await honest.event()).event is EventKind.RUN_SNAPSHOT
            for number, data in enumerate([data for data, _ in BAD.values()][part::4]):
                hostile = await bench.connect()
                await hostile.ask("view.run.watch", {"subscriptionId": "h"}, run_id="run-1")
                await hostile.event()
                await hostile.stream.send_all(data)
                assert await hostile.receive() is None
                await trio.testing.wait_all_tasks_blocked()
                assert bench.parts.services.hub.subscription_count == 1
                assert bench.parts.listener.connection_count == 1
                bench.parts.services.hub.process_changed("run-1")
                event = await honest.event()
                assert (event.event, event.revision) == (EventKind.RUN_PATCH, 1), number
            assert (await honest.ask("run.pause", run_id="run-1")).outcome is Outcome.ACCEPTED
            lines = [line for line in bench.log_lines() if "connection." in line]
            assert lines != []
            assert all("connection.violation" in line and len(line) < 200 for line in lines)
            assert SECRET not in "".join(bench.log_lines())

    run(body)


def test_a_frame_that_is_just_good_is_answered(state_dir: Path) -> None:
    """Whatever is asked for, the answer comes, and the connection stays."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            for name, data in good():
                await peer.stream.send_all(data)
                message = await peer.receive()
                assert isinstance(message, Response), name
                assert message.outcome in {Outcome.ACCEPTED, Outcome.REJECTED}, name
            assert (await peer.ask("run.list")).outcome is Outcome.ACCEPTED
            assert not [line for line in bench.log_lines() if "connection." in line]

    run(body)
