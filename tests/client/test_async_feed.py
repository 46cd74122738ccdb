"""Mirrors and their changes on both event loops."""

from __future__ import annotations

from typing import Any

import pytest

from pi_workflows.base.errors import NotFound, ProtocolViolation
from pi_workflows.protocol.change import Change
from tests.client import newsreel
from tests.client.async_stage import LOOPS, AnyClient, Stage, reason_of, run_test
from tests.client.peer import response
from tests.protocol.run_news import RUN

pytestmark = pytest.mark.parametrize("loop", LOOPS)


def test_a_mirror_comes_with_each_change(loop: str) -> None:
    """A run is mirrored over a lost connection, from what was applied, until it is gone."""

    async def test(stage: Stage) -> None:
        watches: list[dict[str, Any]] = []

        async def script() -> None:
            connection = await stage.server.accept()
            request = await connection.request()
            watches.append(request["payload"])
            await connection.send(newsreel.begun(request, 4) + newsreel.small(request, 5))
            await stage.sleep(1)
            await connection.close()
            connection = await stage.server.accept()
            request = await connection.request()
            watches.append(request["payload"])
            await connection.send(response(request) + newsreel.small(request, 6))
            await stage.sleep(1)
            await connection.send(newsreel.removed(request))
            await connection.until_closed()
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            seen: list[tuple[int | None, bool]] = []
            changes: list[Change] = []
            async with client.watch_run(RUN) as feed:
                async for mirror, change in feed:
                    seen.append((mirror.revision, mirror.is_stale))
                    changes.append(change)
            client.close()
        whole, lost, restored, end = changes
        assert seen == [(5, False), (5, True), (6, False), (6, True)]
        assert whole.is_snapshot
        assert reason_of(lost) == "connection_lost"
        assert restored == Change(is_restored=True, targets={"summary/": 6})
        assert (reason_of(end), end.is_end) == ("run_removed", True)
        name = watches[0]["subscriptionId"]
        assert watches == [{"subscriptionId": name}, {"subscriptionId": name, "revision": 5}]

    run_test(loop, test)


def test_a_fault_is_repaired(loop: str) -> None:
    """A patch that does not fit makes the client watch anew, without being asked."""

    async def test(stage: Stage) -> None:
        async def script() -> None:
            connection = await stage.server.accept()
            request = await connection.request()
            await connection.send(newsreel.begun(request, 4))
            await stage.sleep(1)
            await connection.send(newsreel.small(request, 9))
            again = await connection.request()
            assert again["payload"] == request["payload"]
            await connection.send(newsreel.begun(again, 9))
            assert (await connection.request())["operation"] == "view.run.unwatch"
            await connection.until_closed()
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            async with client.watch_run(RUN) as feed:
                faults = [(await client.next_news()).change.fault for _ in range(3)]
                assert faults == [None, "revisionGap", None]
                assert (feed.mirror.revision, feed.mirror.is_stale) == (9, False)
            await stage.settle()
            client.close()

    run_test(loop, test)


def test_a_list_comes_whole(loop: str) -> None:
    """The pages of the run list are collected before anything is told."""

    async def test(stage: Stage) -> None:
        async def script() -> None:
            connection = await stage.server.accept()
            await connection.send(newsreel.listed(await connection.request()))
            for _ in range(2):
                await connection.send(newsreel.more(await connection.request()))
            await connection.until_closed()
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            async with client.watch_list(None) as feed:
                mirror, change = await anext(feed)
                assert change == Change(is_snapshot=True)
                assert mirror.items == ("one", "two", "three")
            client.close()

    run_test(loop, test)


def test_news_of_several_feeds_come_one_by_one(loop: str) -> None:
    """Whoever follows several runs waits once, and learns whose news it is."""

    async def test(stage: Stage) -> None:
        async def script() -> None:
            connection = await stage.server.accept()
            first = await connection.request()
            await connection.send(newsreel.begun(first, 4))
            second = await connection.request()
            await connection.send(newsreel.begun(second, 7))
            await connection.until_closed()
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            async with client.watch_run(RUN) as one, client.watch_run(RUN) as other:
                told = [(await client.next_news()).watch for _ in range(2)]
                assert told == [one.watch, other.watch]
                assert (one.mirror.revision, other.mirror.revision) == (4, 7)
            client.close()

    run_test(loop, test)


def test_an_unknown_run_is_not_mirrored(loop: str) -> None:
    """The refusal is raised, and the server is not told about what it refused."""

    async def test(stage: Stage) -> None:
        async def script() -> None:
            connection = await stage.server.accept()
            await connection.send(response(await connection.request(), "notFound"))
            assert await connection.until_closed() == b""
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            with pytest.raises(NotFound):
                async with client.watch_run(RUN):
                    pass
            await stage.settle()
            client.close()

    run_test(loop, test)


def test_a_feed_whose_beginning_is_cancelled_is_ended(loop: str) -> None:
    """The server may have begun it, so it is told."""

    async def test(stage: Stage) -> None:
        seen: list[str] = []

        async def script() -> None:
            connection = await stage.server.accept()
            seen.extend([(await connection.request())["operation"] for _ in range(2)])
            await connection.until_closed()
            await connection.close()

        async def begin(client: AnyClient) -> None:
            async with client.watch_run(RUN):
                pass

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            assert not await stage.is_over_in(1, begin, client)
            await stage.settle()
            client.close()
        assert seen == ["view.run.watch", "view.run.unwatch"]

    run_test(loop, test)


def test_content_is_fetched_and_verified(loop: str) -> None:
    """A value behind a reference comes in parts; content of another run is refused."""

    async def test(stage: Stage) -> None:
        async def script() -> None:
            connection = await stage.server.accept()
            for _ in range(2):
                await connection.send(newsreel.chunk(await connection.request()))
            request = await connection.request()
            await connection.send(newsreel.chunk({**request, "runId": "other"}))
            await connection.until_closed()
            await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            assert await client.content(RUN, {"plain": 1}) == {"plain": 1}
            assert await client.content(RUN, newsreel.REFERENCE) == ["a", "b"]
            with pytest.raises(ProtocolViolation):
                await client.content(RUN, newsreel.REFERENCE)
            client.close()

    run_test(loop, test)
