"""What a connection may do to its server and to the others: nothing but what the protocol says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
import trio.testing

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.base.limits import (
    CONNECTIONS_MAX,
    FRAME_BYTES_MAX,
    INFLIGHT_REQUESTS_MAX,
    SLOW_CLIENT_MS,
    SUBSCRIPTIONS_MAX,
)
from pi_workflows.protocol import envelope
from pi_workflows.server import listener
from pi_workflows.server.log import ServerLog
from pi_workflows.server.paths import prepare
from tests.server.bench import VERSION, run, server
from tests.server.clocks import FixedClock

_GOOD = (
    b'{"clientId":"c","idempotencyKey":"k","operation":"run.list","payload":{},"requestId":"r",'
    b'"schema":"pi-workflows.client.v1","type":"request"}'
)

_BAD = {
    "no JSON": b"hello\n",
    "not UTF-8": b'{"a":"\xff"}\n',
    "not an object": b"[]\n",
    "not canonical": _GOOD.replace(b'"payload":{}', b'"payload": {}') + b"\n",
    "another schema": _GOOD.replace(b"client.v1", b"client.v2") + b"\n",
    "no request": _GOOD.replace(b'"type":"request"', b'"type":"response"') + b"\n",
    "unknown type": _GOOD.replace(b'"type":"request"', b'"type":"demand"') + b"\n",
    "unknown operation": _GOOD.replace(b"run.list", b"run.mist") + b"\n",
    "unknown field": _GOOD.replace(b'"type"', b'"secret":1,"type"') + b"\n",
    "missing field": _GOOD.replace(b'"clientId":"c",', b"") + b"\n",
    "empty ID": _GOOD.replace(b'"requestId":"r"', b'"requestId":""') + b"\n",
    "long ID": _GOOD.replace(b'"requestId":"r"', b'"requestId":"' + b"r" * 257 + b'"') + b"\n",
    "bad revision": _GOOD.replace(b'"idem', b'"expectedRevision":-1,"idem') + b"\n",
    "too deep": _GOOD.replace(b"{}", b"[" * 200 + b"]" * 200) + b"\n",
    "too large": b"x" * (FRAME_BYTES_MAX + 1),
    "cut off": _GOOD[:-1],
}


def test_hello_comes_first(state_dir: Path) -> None:
    """The server speaks first, and says which package it is of."""

    async def body() -> None:
        async with server(state_dir) as bench:
            hello = await (await bench.connect_silently()).hello()
            assert hello.package_version == VERSION
            assert hello.connection_id.startswith("connection-")

    run(body)


@pytest.mark.parametrize("kind", _BAD)
def test_a_bad_frame_closes_its_connection_only(state_dir: Path, kind: str) -> None:
    """A peer that breaks the protocol gets no reply and a line in the log; nobody else suffers."""

    async def body() -> None:
        async with server(state_dir) as bench:
            hostile, honest = await bench.connect(), await bench.connect()
            await hostile.stream.send_all(_BAD[kind])
            if kind == "cut off":
                await hostile.stream.aclose()
                await trio.testing.wait_all_tasks_blocked()
            else:
                assert await hostile.receive() is None
            assert (await honest.ask("run.list")).outcome is Outcome.ACCEPTED
            assert (await (await bench.connect()).ask("run.list")).outcome is Outcome.ACCEPTED
            (line,) = (line for line in bench.log_lines() if "connection." in line)
            assert "connection.violation" in line
            assert "secret" not in line

    run(body)


def test_frames_before_a_bad_one_count(state_dir: Path) -> None:
    """A request that came whole before the violation is done, though nobody hears of it."""

    async def body() -> None:
        async with server(state_dir) as bench:
            hostile, honest = await bench.connect(), await bench.connect()
            start = hostile.request("run.start", bench.start(), run_id="run-1")
            await hostile.stream.send_all(envelope.encode(start) + b"no frame\n")
            while await hostile.receive() is not None:
                pass
            await trio.testing.wait_all_tasks_blocked()
            assert (await honest.ask("view.run.get", run_id="run-1")).outcome is Outcome.ACCEPTED

    run(body)


@pytest.mark.parametrize(
    ("operation", "payload", "run_id", "field"),
    [
        ("run.list", {"limit": 0}, None, "limit"),
        ("run.list", {"surprise": 1}, None, "surprise"),
        ("run.list", [], None, "payload"),
        ("run.pause", {}, None, "runId"),
        ("run.list", {}, "run-1", "runId"),
        ("view.page", {"kind": "dreams"}, "run-1", "kind"),
        ("state.backup", {"destination": "relative"}, None, "destination"),
        ("run.start", {}, "run-1", "projectPath"),
        ("run.start", {}, "../run", "runId"),
    ],
)
def test_a_bad_payload_is_rejected_and_the_connection_stays(
    state_dir: Path, operation: str, payload: Json, run_id: str | None, field: str
) -> None:
    """A well-formed frame with a payload that does not fit is refused by the name of its field."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            response = await peer.ask(operation, payload, run_id=run_id)
            assert response.outcome is Outcome.REJECTED
            assert isinstance(response.receipt, dict)
            assert response.receipt["field"] == field
            assert response.error is not None
            assert (await peer.ask("run.list")).outcome is Outcome.ACCEPTED

    run(body)


def test_a_stalled_client_is_closed_after_a_minute(state_dir: Path) -> None:
    """A client that takes nothing for 60 s loses its connection; meanwhile everybody is served."""

    async def body() -> None:
        async with server(state_dir) as bench:
            stalled = await bench.connect(is_stalling=True)
            honest = await bench.connect()
            await stalled.send(stalled.request("run.list"))
            began = trio.current_time()
            assert (await honest.ask("run.list")).outcome is Outcome.ACCEPTED
            assert trio.current_time() == began
            await trio.sleep(SLOW_CLIENT_MS / 1_000 + 1)
            assert bench.parts.listener.connection_count == 1
            assert (await honest.ask("run.list")).outcome is Outcome.ACCEPTED
            assert sum("code=slow" in line for line in bench.log_lines()) == 1

    run(body)


def test_too_many_unanswered_requests_are_not_read(state_dir: Path) -> None:
    """Beyond 64 requests without a reply the server reads nothing more from that connection."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect(is_stalling=True)
            sent = 0

            async def flood() -> None:
                nonlocal sent
                while True:
                    await peer.send(peer.request("run.list"))
                    sent += 1

            async with trio.open_nursery() as nursery:
                nursery.start_soon(flood)
                await trio.testing.wait_all_tasks_blocked()
                assert INFLIGHT_REQUESTS_MAX <= sent <= INFLIGHT_REQUESTS_MAX + 1
                message = await peer.receive()
                assert message is not None
                await trio.testing.wait_all_tasks_blocked()
                assert sent > INFLIGHT_REQUESTS_MAX + 1
                nursery.cancel_scope.cancel()

    run(body)


def test_replies_come_before_events(state_dir: Path) -> None:
    """A subscription's first event follows its reply, and so does the news of a command."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            await peer.ask("view.run.watch", {"subscriptionId": "s"}, run_id="run-1")
            assert peer.events == []
            first = await peer.event()
            assert (first.subscription_id, first.run_id, first.revision) == ("s", "run-1", 1)
            await peer.ask("run.pause", run_id="run-1")
            assert peer.events == []
            assert (await peer.event()).revision == 2

    run(body)


def test_connections_are_limited(state_dir: Path) -> None:
    """One connection too many is closed at once, and one that ended makes room."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peers = [await bench.connect() for _ in range(CONNECTIONS_MAX)]
            assert await (await bench.connect_silently()).receive() is None
            await peers[0].stream.aclose()
            await trio.testing.wait_all_tasks_blocked()
            assert (await (await bench.connect()).ask("run.list")).outcome is Outcome.ACCEPTED

    run(body)


def test_subscriptions_are_limited(state_dir: Path) -> None:
    """One subscription too many is refused; one in the place of another is not."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            for number in range(SUBSCRIPTIONS_MAX):
                reply = await peer.ask("view.runs.watch", {"subscriptionId": f"s-{number}"})
                assert reply.outcome is Outcome.ACCEPTED
            refused = await peer.ask("view.runs.watch", {"subscriptionId": "one more"})
            assert refused.outcome is Outcome.REJECTED
            again = await peer.ask("view.runs.watch", {"subscriptionId": "s-0"})
            assert again.outcome is Outcome.ACCEPTED

    run(body)


def test_a_stop_is_answered_before_the_connection_ends(state_dir: Path) -> None:
    """Whoever asks for the stop hears of it, and then sees the end of the server's work."""

    async def body() -> None:
        async with server(state_dir, is_compared=False) as bench:
            peer = await bench.connect()
            reply = await peer.ask("server.stop")
            assert (reply.outcome, reply.receipt) == (Outcome.ACCEPTED, {"stopping": True})
            assert await peer.receive() is None

    run(body)


def test_another_users_connection_is_not_served(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A peer of another user gets no hello, and the next one of our own does."""

    async def body() -> None:
        state = prepare(state_dir)
        door = listener.bind(state.socket, ServerLog(state.log, FixedClock()))
        accepted: list[trio.abc.Stream] = []

        async def accept() -> None:
            accepted.append(await door.accept())

        async with door, trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            own = os.geteuid()
            with monkeypatch.context() as planted:
                planted.setattr(os, "geteuid", lambda: own + 1)
                async with await trio.open_unix_socket(str(state.socket)) as foreign:
                    assert await foreign.receive_some(1) == b""
            assert accepted == []
            async with await trio.open_unix_socket(str(state.socket)):
                await trio.testing.wait_all_tasks_blocked()
                assert len(accepted) == 1
                await accepted[0].aclose()
        assert "reason=user" in state.log.read_text()

    trio.run(body)
