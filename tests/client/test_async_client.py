"""The clients of both event loops, against a scripted server, on a clock that jumps."""

from __future__ import annotations

from typing import Any

import pytest

from pi_workflows.base.errors import (
    NotFound,
    Outcome,
    OutcomeUnknown,
    Unavailable,
)
from pi_workflows.base.limits import CLIENT_RESEND_MS
from pi_workflows.protocol.operations import Operation
from tests.client.async_stage import LOOPS, AnyClient, Stage, pause, reason_of, run_test
from tests.client.peer import VERSION, response, snapshot

pytestmark = pytest.mark.parametrize("loop", LOOPS)

# Eleven delays between twelve attempts, each at its upper bound.
_EXHAUSTED_SECONDS = 0.25 + 0.5 + 1 + 2 + 4 + 8 + 5 * 10


def test_requests_go_side_by_side(loop: str) -> None:
    """A reply that is slow holds up no other."""

    async def test(stage: Stage) -> None:
        got = {"run.pause": stage.signal(), "run.cancel": stage.signal()}

        async def script() -> None:
            connection = await stage.server.accept()
            requests = [await connection.request(), await connection.request()]
            for request in reversed(requests):
                await connection.send(response(request))
                await got[request["operation"]].wait()
            await connection.until_closed()
            await connection.close()

        async def ask(client: AnyClient, operation: Operation) -> None:
            await client.request(operation, {}, run_id="build-1")
            got[operation.value].set()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            assert client.server_version == VERSION
            async with stage.tasks() as asking:
                asking.start(ask, client, Operation.RUN_PAUSE)
                asking.start(ask, client, Operation.RUN_CANCEL)
            client.close()

    run_test(loop, test)


def test_a_lost_reply_is_adopted(loop: str) -> None:
    """When the reply is lost the same request goes to the next connection and is adopted there."""

    async def test(stage: Stage) -> None:
        seen: list[dict[str, Any]] = []

        async def script() -> None:
            for outcome in (None, "adopted"):
                connection = await stage.server.accept()
                seen.append(await connection.request())
                if outcome is not None:
                    await connection.send(response(seen[-1], outcome))
                    await connection.until_closed()
                await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            assert await pause(client) is Outcome.ADOPTED
            client.close()
        assert len({request.pop("requestId") for request in seen}) == 2
        assert seen[0] == seen[1]

    run_test(loop, test)


def test_a_subscription_survives_a_lost_connection(loop: str) -> None:
    """After reconnecting the client asks for what follows the revision that it has taken."""

    async def test(stage: Stage) -> None:
        watches: list[dict[str, Any]] = []

        async def script() -> None:
            for revision in (4, 6):
                connection = await stage.server.accept()
                request = await connection.request()
                watches.append(request["payload"])
                await connection.send(response(request))
                await connection.send(snapshot(watches[-1]["subscriptionId"], revision))
                if revision == 6:
                    await connection.until_closed()
                await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            subscription = await client.watch("build-1")
            assert (await client.next_event(subscription)).revision == 4
            assert reason_of(await client.next_event(subscription)) == "connection_lost"
            assert (await client.next_event()).revision == 6
            client.close()
        name = subscription.subscription_id
        assert watches == [{"subscriptionId": name}, {"subscriptionId": name, "revision": 4}]

    run_test(loop, test)


async def _lose(stage: Stage, requests: int) -> None:
    """Serve one client, answer all but the last of its requests, and leave for good."""
    connection = await stage.server.accept()
    for _ in range(requests - 1):
        await connection.send(response(await connection.request()))
    await connection.request()
    stage.server.close()
    await connection.close()


def test_the_outcome_is_unknown_after_thirty_seconds(loop: str) -> None:
    """A command whose reply was lost, and no server since, is unknown after 30 s of attempts."""

    async def test(stage: Stage) -> None:
        async with stage.tasks() as tasks:
            tasks.start(_lose, stage, 1)
            client = await tasks.open()
            began = stage.now()
            with pytest.raises(OutcomeUnknown):
                await pause(client)
            assert stage.now() - began == pytest.approx(CLIENT_RESEND_MS / 1_000)
            with pytest.raises(Unavailable):
                await client.request(Operation.RUN_LIST, {})
            client.close()

    run_test(loop, test)


def test_a_server_that_drops_every_request_is_given_up(loop: str) -> None:
    """A request that costs each connection is sent twelve times, with growing delays."""

    async def drop(stage: Stage) -> None:
        for _ in range(12):
            connection = await stage.server.accept()
            await connection.request()
            await connection.close()

    async def test(stage: Stage) -> None:
        async with stage.tasks() as tasks:
            tasks.start(drop, stage)
            client = await tasks.open()
            began = stage.now()
            with pytest.raises(OutcomeUnknown):
                await pause(client)
            # The first connection is followed by the next at once.
            assert stage.now() - began == pytest.approx(_EXHAUSTED_SECONDS - 0.25)

    run_test(loop, test)


def test_when_the_server_stays_away_a_last_event_says_so(loop: str) -> None:
    """Twelve attempts without a server end the subscription and then the client."""

    async def test(stage: Stage) -> None:
        async with stage.tasks() as tasks:
            tasks.start(_lose, stage, 2)
            client = await tasks.open()
            subscription = await client.watch("build-1")
            began = stage.now()
            with pytest.raises(OutcomeUnknown):
                await pause(client)
            assert reason_of(await client.next_event(subscription)) == "connection_lost"
            assert reason_of(await client.next_event(subscription)) == "reconnect_exhausted"
            assert stage.now() - began == pytest.approx(_EXHAUSTED_SECONDS)
            with pytest.raises(Unavailable):
                await client.next_event()
            with pytest.raises(Unavailable):
                await pause(client)

    run_test(loop, test)


def test_an_idle_client_waits_for_work_before_it_reconnects(loop: str) -> None:
    """Without a request or subscription a lost server is left alone; the next request finds it."""

    async def test(stage: Stage) -> None:

        async def script() -> None:
            connection = await stage.server.accept()
            await connection.close()
            assert not await stage.is_over_in(3_600, stage.server.accept)
            asking.set()
            connection = await stage.server.accept()
            await connection.send(response(await connection.request()))
            await connection.until_closed()
            await connection.close()

        asking = stage.signal()
        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            await asking.wait()
            assert await pause(client) is Outcome.ACCEPTED
            client.close()

    run_test(loop, test)


def test_a_cancelled_request_is_given_up(loop: str) -> None:
    """A caller that goes away leaves nothing to resend."""

    async def test(stage: Stage) -> None:
        seen: list[str] = []

        async def script() -> None:
            connection = await stage.server.accept()
            seen.append((await connection.request())["operation"])
            await stage.sleep(2)
            await connection.close()
            connection = await stage.server.accept()
            seen.append((request := await connection.request())["operation"])
            await connection.send(response(request))
            await connection.until_closed()
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            assert not await stage.is_over_in(1, pause, client)
            await stage.sleep(2)
            await client.request(Operation.RUN_CANCEL, {}, run_id="build-1")
            client.close()
        assert seen == ["run.pause", "run.cancel"]

    run_test(loop, test)


def test_a_slow_answer_is_waited_for(loop: str) -> None:
    """While the connection lives a request has all the time it needs, also after a lost one."""

    async def test(stage: Stage) -> None:
        async def script() -> None:
            connection = await stage.server.accept()
            await connection.request()
            await connection.close()
            connection = await stage.server.accept()
            request = await connection.request()
            await stage.sleep(3_600)
            await connection.send(response(request))
            await connection.until_closed()
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            assert await pause(client) is Outcome.ACCEPTED
            client.close()

    run_test(loop, test)


def test_a_request_long_after_the_loss_has_its_own_thirty_seconds(loop: str) -> None:
    """The time for resends begins with the request, not with a connection lost long before."""

    async def test(stage: Stage) -> None:
        again = stage.new_server()

        async def script() -> None:
            connection = await stage.server.accept()
            stage.server.close()
            await connection.close()
            await stage.sleep(3_605)
            again.listen()
            connection = await again.accept()
            await connection.send(response(await connection.request()))
            await connection.until_closed()
            await connection.close()
            again.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            await stage.sleep(3_600)
            assert await pause(client) is Outcome.ACCEPTED
            client.close()

    run_test(loop, test)


def test_a_restored_subscription_gives_new_patience(loop: str) -> None:
    """The attempts count from the last time that everything was restored."""

    async def test(stage: Stage) -> None:
        again = stage.new_server()

        async def script() -> None:
            connection = await stage.server.accept()
            await connection.send(response(await connection.request()))
            stage.server.close()
            await connection.close()
            await stage.sleep(20)
            again.listen()
            connection = await again.accept()
            request = await connection.request()
            await connection.send(response(request))
            await connection.send(snapshot(request["payload"]["subscriptionId"], 1))
            again.close()
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            await client.watch("build-1")
            assert reason_of(await client.next_event()) == "connection_lost"
            assert (await client.next_event()).revision == 1
            assert reason_of(await client.next_event()) == "connection_lost"
            began = stage.now()
            assert reason_of(await client.next_event()) == "reconnect_exhausted"
            assert stage.now() - began == pytest.approx(_EXHAUSTED_SECONDS)

    run_test(loop, test)


def test_an_unknown_run_cannot_be_watched(loop: str) -> None:
    """The refusal of a subscription is raised; the end of one is told to the server."""

    async def test(stage: Stage) -> None:
        seen: list[str] = []

        async def script() -> None:
            connection = await stage.server.accept()
            for outcome in ("notFound", "accepted", "accepted"):
                request = await connection.request()
                seen.append(request["operation"])
                await connection.send(response(request, outcome))
            await connection.until_closed()
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            with pytest.raises(NotFound):
                await client.watch("build-1")
            await client.unwatch(await client.watch(None))
            client.close()
        assert seen == ["view.run.watch", "view.runs.watch", "view.run.unwatch"]

    run_test(loop, test)
