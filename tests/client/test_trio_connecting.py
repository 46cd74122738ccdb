"""The client for trio finds its server, starts it, or says why there is none."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from pi_workflows.base.errors import OutcomeUnknown, ProtocolViolation, Unavailable
from pi_workflows.base.limits import CLIENT_CONNECT_MS, CLIENT_START_MS
from pi_workflows.client.trio_client import TrioClient, open_client
from pi_workflows.protocol.operations import Operation
from tests.client.peer import hello, response
from tests.client.trio_peer import TrioListener, endpoint_of, pause, reason_of, run_test


def test_a_missing_server_is_started_once() -> None:
    """The starter is called once; then the client looks for ten seconds."""

    async def test(listener: TrioListener) -> None:
        calls: list[None] = []
        async with trio.open_nursery() as nursery:
            with pytest.raises(Unavailable) as missing:
                await open_client(nursery, endpoint_of(listener.path))
            assert missing.value.reason_code == "serverNotRunning"
            began = trio.current_time()
            with pytest.raises(Unavailable) as failed:
                await open_client(nursery, endpoint_of(listener.path, lambda: calls.append(None)))
            assert failed.value.reason_code == "serverStartFailed"
            assert trio.current_time() - began == pytest.approx(CLIENT_START_MS / 1_000)
        assert len(calls) == 1

    run_test(test, listens=False)


def test_a_server_that_says_nothing_is_unreachable() -> None:
    """The hello has two seconds."""

    async def test(listener: TrioListener) -> None:
        async with trio.open_nursery() as nursery:
            began = trio.current_time()
            with pytest.raises(Unavailable) as silent:
                await open_client(nursery, endpoint_of(listener.path))
            assert silent.value.reason_code == "serverUnreachable"
            assert trio.current_time() - began == pytest.approx(CLIENT_CONNECT_MS / 1_000)

    run_test(test)


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
            client = await open_client(nursery, endpoint_of(listener.path))
            with pytest.raises(Unavailable) as mismatch:
                await pause(client)
            assert mismatch.value.reason_code == "versionMismatch"
            (await client.request(Operation.SERVER_STOP, {})).done()
            client.close()

    run_test(test)


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
            client = await open_client(nursery, endpoint_of(listener.path))
            subscription = await client.watch("build-1")
            with pytest.raises(OutcomeUnknown):
                await pause(client)
            assert reason_of(await client.next_event(subscription)) == "reconnect_exhausted"
            with pytest.raises(ProtocolViolation):
                await client.next_event()

    run_test(test)


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
            client = await open_client(nursery, endpoint_of(listener.path))
            nursery.start_soon(wait, client)
            await trio.testing.wait_all_tasks_blocked()
            client.close()
        assert ended == ["event"]

    run_test(test)
