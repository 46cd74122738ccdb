"""The client for trio, against a scripted server on a real socket, on a clock that jumps."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from pi_workflows.base.errors import (
    NotFound,
    Outcome,
    OutcomeUnknown,
    ProtocolViolation,
    Unavailable,
)
from pi_workflows.base.limits import CLIENT_CONNECT_MS, CLIENT_RESEND_MS, CLIENT_START_MS
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.client.trio_client import TrioClient, open_client
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.operations import Operation
from tests.client.peer import VERSION, hello, response, snapshot
from tests.client.trio_peer import TrioListener

# Eleven delays between twelve attempts, each at its upper bound.
_EXHAUSTED_SECONDS = 0.25 + 0.5 + 1 + 2 + 4 + 8 + 5 * 10

_Test = Callable[[TrioListener], Awaitable[None]]


def _run(test: _Test, *, listens: bool = True) -> None:
    """Run a test with its server in an event loop whose clock jumps when everybody waits."""

    async def run(path: Path) -> None:
        listener = TrioListener(path)
        try:
            if listens:
                listener.listen()
            await test(listener)
        finally:
            listener.close()

    with tempfile.TemporaryDirectory() as directory:
        clock = trio.testing.MockClock(autojump_threshold=0)
        trio.run(run, Path(directory) / "host.sock", clock=clock)


def _endpoint(path: Path, starter: Callable[[], None] | None = None) -> Endpoint:
    """Return where the client connects."""
    return Endpoint(str(path), VERSION, client_id="client-1", random=lambda: 1.0, starter=starter)


async def _pause(client: TrioClient) -> Outcome:
    """Ask to pause a run and return the outcome."""
    return (await client.request(Operation.RUN_PAUSE, {}, run_id="build-1")).outcome


def _reason(event: Event) -> object:
    """Return why a subscription is unavailable."""
    assert event.event is EventKind.UNAVAILABLE
    assert isinstance(event.payload, dict)
    return event.payload["reasonCode"]


def test_requests_go_side_by_side() -> None:
    """A reply that is slow holds up no other."""

    async def test(listener: TrioListener) -> None:
        got = {"run.pause": trio.Event(), "run.cancel": trio.Event()}

        async def script() -> None:
            connection = await listener.accept()
            requests = [await connection.request(), await connection.request()]
            for request in reversed(requests):
                await connection.send(response(request))
                await got[request["operation"]].wait()
            await connection.until_closed()
            await connection.close()

        async def ask(client: TrioClient, operation: Operation) -> None:
            await client.request(operation, {}, run_id="build-1")
            got[operation.value].set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            client = await open_client(nursery, _endpoint(listener.path))
            assert client.server_version == VERSION
            async with trio.open_nursery() as asking:
                asking.start_soon(ask, client, Operation.RUN_PAUSE)
                asking.start_soon(ask, client, Operation.RUN_CANCEL)
            client.close()

    _run(test)


def test_a_lost_reply_is_adopted() -> None:
    """When the reply is lost the same request goes to the next connection and is adopted there."""

    async def test(listener: TrioListener) -> None:
        seen: list[dict[str, Any]] = []

        async def script() -> None:
            for outcome in (None, "adopted"):
                connection = await listener.accept()
                seen.append(await connection.request())
                if outcome is not None:
                    await connection.send(response(seen[-1], outcome))
                    await connection.until_closed()
                await connection.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            client = await open_client(nursery, _endpoint(listener.path))
            assert await _pause(client) is Outcome.ADOPTED
            client.close()
        assert len({request.pop("requestId") for request in seen}) == 2
        assert seen[0] == seen[1]

    _run(test)


def test_a_subscription_survives_a_lost_connection() -> None:
    """After reconnecting the client asks for what follows the revision that it has taken."""

    async def test(listener: TrioListener) -> None:
        watches: list[dict[str, Any]] = []

        async def script() -> None:
            for revision in (4, 6):
                connection = await listener.accept()
                request = await connection.request()
                watches.append(request["payload"])
                await connection.send(response(request))
                await connection.send(snapshot(watches[-1]["subscriptionId"], revision))
                if revision == 6:
                    await connection.until_closed()
                await connection.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            client = await open_client(nursery, _endpoint(listener.path))
            subscription = await client.watch("build-1")
            assert (await client.next_event(subscription)).revision == 4
            assert _reason(await client.next_event(subscription)) == "connection_lost"
            assert (await client.next_event()).revision == 6
            client.close()
        name = subscription.subscription_id
        assert watches == [{"subscriptionId": name}, {"subscriptionId": name, "revision": 4}]

    _run(test)


async def _lose(listener: TrioListener, requests: int) -> None:
    """Serve one client, answer all but the last of its requests, and leave for good."""
    connection = await listener.accept()
    for _ in range(requests - 1):
        await connection.send(response(await connection.request()))
    await connection.request()
    listener.close()
    await connection.close()


def test_the_outcome_is_unknown_after_thirty_seconds() -> None:
    """A command whose reply was lost, and no server since, is unknown after 30 s of attempts."""

    async def test(listener: TrioListener) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_lose, listener, 1)
            client = await open_client(nursery, _endpoint(listener.path))
            began = trio.current_time()
            with pytest.raises(OutcomeUnknown):
                await _pause(client)
            assert trio.current_time() - began == pytest.approx(CLIENT_RESEND_MS / 1_000)
            with pytest.raises(Unavailable):
                await client.request(Operation.RUN_LIST, {})
            client.close()

    _run(test)


def test_a_server_that_drops_every_request_is_given_up() -> None:
    """A request that costs each connection is sent twelve times, with growing delays."""

    async def drop(listener: TrioListener) -> None:
        for _ in range(12):
            connection = await listener.accept()
            await connection.request()
            await connection.close()

    async def test(listener: TrioListener) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(drop, listener)
            client = await open_client(nursery, _endpoint(listener.path))
            began = trio.current_time()
            with pytest.raises(OutcomeUnknown):
                await _pause(client)
            # The first connection is followed by the next at once.
            assert trio.current_time() - began == pytest.approx(_EXHAUSTED_SECONDS - 0.25)

    _run(test)


def test_when_the_server_stays_away_a_last_event_says_so() -> None:
    """Twelve attempts without a server end the subscription and then the client."""

    async def test(listener: TrioListener) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_lose, listener, 2)
            client = await open_client(nursery, _endpoint(listener.path))
            subscription = await client.watch("build-1")
            began = trio.current_time()
            with pytest.raises(OutcomeUnknown):
                await _pause(client)
            assert _reason(await client.next_event(subscription)) == "connection_lost"
            assert _reason(await client.next_event(subscription)) == "reconnect_exhausted"
            assert trio.current_time() - began == pytest.approx(_EXHAUSTED_SECONDS)
            with pytest.raises(Unavailable):
                await client.next_event()
            with pytest.raises(Unavailable):
                await _pause(client)

    _run(test)


def test_an_idle_client_waits_for_work_before_it_reconnects() -> None:
    """Without a request or subscription a lost server is left alone; the next request finds it."""

    async def test(listener: TrioListener) -> None:

        async def script() -> None:
            connection = await listener.accept()
            await connection.close()
            with trio.move_on_after(3_600) as idle:
                await listener.accept()
            assert idle.cancelled_caught
            asking.set()
            connection = await listener.accept()
            await connection.send(response(await connection.request()))
            await connection.until_closed()
            await connection.close()

        asking = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            client = await open_client(nursery, _endpoint(listener.path))
            await asking.wait()
            assert await _pause(client) is Outcome.ACCEPTED
            client.close()

    _run(test)


def test_a_cancelled_request_is_given_up() -> None:
    """A caller that goes away leaves nothing to resend."""

    async def test(listener: TrioListener) -> None:
        seen: list[str] = []

        async def script() -> None:
            connection = await listener.accept()
            seen.append((await connection.request())["operation"])
            await trio.sleep(2)
            await connection.close()
            connection = await listener.accept()
            seen.append((request := await connection.request())["operation"])
            await connection.send(response(request))
            await connection.until_closed()
            await connection.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            client = await open_client(nursery, _endpoint(listener.path))
            with trio.move_on_after(1) as scope:
                await _pause(client)
            assert scope.cancelled_caught
            await trio.sleep(2)
            await client.request(Operation.RUN_CANCEL, {}, run_id="build-1")
            client.close()
        assert seen == ["run.pause", "run.cancel"]

    _run(test)


def test_a_slow_answer_is_waited_for() -> None:
    """While the connection lives a request has all the time it needs, also after a lost one."""

    async def test(listener: TrioListener) -> None:
        async def script() -> None:
            connection = await listener.accept()
            await connection.request()
            await connection.close()
            connection = await listener.accept()
            request = await connection.request()
            await trio.sleep(3_600)
            await connection.send(response(request))
            await connection.until_closed()
            await connection.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            client = await open_client(nursery, _endpoint(listener.path))
            assert await _pause(client) is Outcome.ACCEPTED
            client.close()

    _run(test)


def test_a_request_long_after_the_loss_has_its_own_thirty_seconds() -> None:
    """The time for resends begins with the request, not with a connection lost long before."""

    async def test(listener: TrioListener) -> None:
        again = TrioListener(listener.path)

        async def script() -> None:
            connection = await listener.accept()
            listener.close()
            await connection.close()
            await trio.sleep(3_605)
            again.listen()
            connection = await again.accept()
            await connection.send(response(await connection.request()))
            await connection.until_closed()
            await connection.close()
            again.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            client = await open_client(nursery, _endpoint(listener.path))
            await trio.sleep(3_600)
            assert await _pause(client) is Outcome.ACCEPTED
            client.close()

    _run(test)


def test_a_restored_subscription_gives_new_patience() -> None:
    """The attempts count from the last time that everything was restored."""

    async def test(listener: TrioListener) -> None:
        again = TrioListener(listener.path)

        async def script() -> None:
            connection = await listener.accept()
            await connection.send(response(await connection.request()))
            listener.close()
            await connection.close()
            await trio.sleep(20)
            again.listen()
            connection = await again.accept()
            request = await connection.request()
            await connection.send(response(request))
            await connection.send(snapshot(request["payload"]["subscriptionId"], 1))
            again.close()
            await connection.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            client = await open_client(nursery, _endpoint(listener.path))
            await client.watch("build-1")
            assert _reason(await client.next_event()) == "connection_lost"
            assert (await client.next_event()).revision == 1
            assert _reason(await client.next_event()) == "connection_lost"
            began = trio.current_time()
            assert _reason(await client.next_event()) == "reconnect_exhausted"
            assert trio.current_time() - began == pytest.approx(_EXHAUSTED_SECONDS)

    _run(test)


def test_an_unknown_run_cannot_be_watched() -> None:
    """The refusal of a subscription is raised; the end of one is told to the server."""

    async def test(listener: TrioListener) -> None:
        seen: list[str] = []

        async def script() -> None:
            connection = await listener.accept()
            for outcome in ("notFound", "accepted", "accepted"):
                request = await connection.request()
                seen.append(request["operation"])
                await connection.send(response(request, outcome))
            await connection.until_closed()
            await connection.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            client = await open_client(nursery, _endpoint(listener.path))
            with pytest.raises(NotFound):
                await client.watch("build-1")
            await client.unwatch(await client.watch(None))
            client.close()
        assert seen == ["view.run.watch", "view.runs.watch", "view.run.unwatch"]

    _run(test)


def test_a_missing_server_is_started_once() -> None:
    """The starter is called once; then the client looks for ten seconds."""

    async def test(listener: TrioListener) -> None:
        calls: list[None] = []
        async with trio.open_nursery() as nursery:
            with pytest.raises(Unavailable) as missing:
                await open_client(nursery, _endpoint(listener.path))
            assert missing.value.reason_code == "serverNotRunning"
            began = trio.current_time()
            with pytest.raises(Unavailable) as failed:
                await open_client(nursery, _endpoint(listener.path, lambda: calls.append(None)))
            assert failed.value.reason_code == "serverStartFailed"
            assert trio.current_time() - began == pytest.approx(CLIENT_START_MS / 1_000)
        assert len(calls) == 1

    _run(test, listens=False)


def test_a_server_that_says_nothing_is_unreachable() -> None:
    """The hello has two seconds."""

    async def test(listener: TrioListener) -> None:
        async with trio.open_nursery() as nursery:
            began = trio.current_time()
            with pytest.raises(Unavailable) as silent:
                await open_client(nursery, _endpoint(listener.path))
            assert silent.value.reason_code == "serverUnreachable"
            assert trio.current_time() - began == pytest.approx(CLIENT_CONNECT_MS / 1_000)

    _run(test)


def test_another_version_is_left_alone() -> None:
    """Only status and stop go to a server of another version."""

    async def test(listener: TrioListener) -> None:

        async def script() -> None:
            connection = await listener.accept(greeting=hello("9.9.9"))
            request = await connection.request()
            assert request["operation"] == "server.stop"
            await connection.send(response(request))
            await connection.until_closed()
            await connection.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            client = await open_client(nursery, _endpoint(listener.path))
            with pytest.raises(Unavailable) as mismatch:
                await _pause(client)
            assert mismatch.value.reason_code == "versionMismatch"
            (await client.request(Operation.SERVER_STOP, {})).done()
            client.close()

    _run(test)


def test_a_server_that_breaks_the_protocol_ends_the_client() -> None:
    """A bad frame ends the connection; who waits for news learns of it."""

    async def test(listener: TrioListener) -> None:

        async def script() -> None:
            connection = await listener.accept()
            await connection.send(response(await connection.request()))
            await connection.request()
            await connection.send(b"[]\n")
            assert await connection.until_closed() == b""
            await connection.close()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            client = await open_client(nursery, _endpoint(listener.path))
            subscription = await client.watch("build-1")
            with pytest.raises(OutcomeUnknown):
                await _pause(client)
            assert _reason(await client.next_event(subscription)) == "reconnect_exhausted"
            with pytest.raises(ProtocolViolation):
                await client.next_event()

    _run(test)


def test_closing_ends_what_waits() -> None:
    """A closed client leaves nobody waiting."""

    async def test(listener: TrioListener) -> None:
        ended: list[str] = []

        async def script() -> None:
            connection = await listener.accept()
            await connection.until_closed()
            await connection.close()

        async def wait(client: TrioClient) -> None:
            with pytest.raises(Unavailable):
                await client.next_event()
            ended.append("event")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(script)
            client = await open_client(nursery, _endpoint(listener.path))
            nursery.start_soon(wait, client)
            await trio.testing.wait_all_tasks_blocked()
            client.close()
        assert ended == ["event"]

    _run(test)
