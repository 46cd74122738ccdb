"""The clients of both event loops find their server, start it, or say why there is none."""

from __future__ import annotations

import pytest

from pi_workflows.base.errors import OutcomeUnknown, ProtocolViolation, Unavailable
from pi_workflows.base.limits import CLIENT_CONNECT_MS, CLIENT_START_MS
from pi_workflows.protocol.operations import Operation
from tests.client.async_stage import LOOPS, AnyClient, Stage, pause, reason_of, run_test
from tests.client.peer import hello, response

pytestmark = pytest.mark.parametrize("loop", LOOPS)


def test_a_missing_server_is_started_once(loop: str) -> None:
    """The starter is called once; then the client looks for ten seconds."""

    async def test(stage: Stage) -> None:
        calls: list[None] = []
        async with stage.tasks() as tasks:
            with pytest.raises(Unavailable) as missing:
                await tasks.open()
            assert missing.value.reason_code == "serverNotRunning"
            began = stage.now()
            with pytest.raises(Unavailable) as failed:
                await tasks.open(lambda: calls.append(None))
            assert failed.value.reason_code == "serverStartFailed"
            assert stage.now() - began == pytest.approx(CLIENT_START_MS / 1_000)
        assert len(calls) == 1

    run_test(loop, test, listens=False)


def test_a_server_that_says_nothing_is_unreachable(loop: str) -> None:
    """The hello has two seconds."""

    async def test(stage: Stage) -> None:
        async with stage.tasks() as tasks:
            began = stage.now()
            with pytest.raises(Unavailable) as silent:
                await tasks.open()
            assert silent.value.reason_code == "serverUnreachable"
            assert stage.now() - began == pytest.approx(CLIENT_CONNECT_MS / 1_000)

    run_test(loop, test)


def test_another_version_is_left_alone(loop: str) -> None:
    """Only status and stop go to a server of another version."""

    async def test(stage: Stage) -> None:

        async def script() -> None:
            connection = await stage.server.accept(greeting=hello("9.9.9"))
            request = await connection.request()
            assert request["operation"] == "server.stop"
            await connection.send(response(request))
            await connection.until_closed()
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            with pytest.raises(Unavailable) as mismatch:
                await pause(client)
            assert mismatch.value.reason_code == "versionMismatch"
            (await client.request(Operation.SERVER_STOP, {})).done()
            client.close()

    run_test(loop, test)


def test_a_server_that_breaks_the_protocol_ends_the_client(loop: str) -> None:
    """A bad frame ends the connection; who waits for news learns of it."""

    async def test(stage: Stage) -> None:

        async def script() -> None:
            connection = await stage.server.accept()
            await connection.send(response(await connection.request()))
            await connection.request()
            await connection.send(b"[]\n")
            assert await connection.until_closed() == b""
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            subscription = await client.watch("build-1")
            with pytest.raises(OutcomeUnknown):
                await pause(client)
            assert reason_of(await client.next_event(subscription)) == "reconnect_exhausted"
            with pytest.raises(ProtocolViolation):
                await client.next_event()

    run_test(loop, test)


def test_closing_ends_what_waits(loop: str) -> None:
    """A closed client leaves nobody waiting."""

    async def test(stage: Stage) -> None:
        ended: list[str] = []

        async def script() -> None:
            connection = await stage.server.accept()
            await connection.until_closed()
            await connection.close()

        async def wait(client: AnyClient) -> None:
            with pytest.raises(Unavailable):
                await client.next_event()
            ended.append("event")

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            tasks.start(wait, client)
            await stage.settle()
            client.close()
        assert ended == ["event"]

    run_test(loop, test)


def test_a_client_may_be_closed_before_it_serves(loop: str) -> None:
    """A client that is closed at once has ended like any other, with its connection."""

    async def test(stage: Stage) -> None:

        async def script() -> None:
            connection = await stage.server.accept()
            assert await connection.until_closed() == b""
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            client.close()
            with pytest.raises(Unavailable):
                await client.next_news()
            with pytest.raises(Unavailable):
                await client.request(Operation.RUN_LIST, {})

    run_test(loop, test)
