"""A Pi session over the socket: who watches it, who coordinates it, and until when."""

from __future__ import annotations

from pathlib import Path

import trio
import trio.testing

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.base.limits import WRITER_QUEUE_MAX
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.run.control import PauseRun
from pi_workflows.kernel.order import Chore, Order
from pi_workflows.protocol.envelope import Event
from tests.server.bench import run, server
from tests.server.coordinating import (
    REPORT,
    begin,
    claim,
    code,
    coordinate,
    members,
    nothing,
    report,
    shown,
    until,
    view,
    watch,
)


def test_the_work_of_a_session_is_pushed(state_dir: Path) -> None:
    """A watched session sends its view now and after each change of its run, numbered."""

    async def body() -> None:
        async with server(state_dir) as bench:
            watcher, other = await bench.connect(), await bench.connect()
            await watch(watcher)
            seen: list[Event] = []
            await begin(bench, other)
            seen.append(await watcher.event())
            for operation in ("run.pause", "run.resume"):
                await other.ask(operation, run_id="run-1")
                seen.append(await watcher.event())
            assert [event.revision for event in seen] == [2, 3, 4]
            assert [shown(view(event)) for event in seen] == [
                ["run-1", "queued"],
                ["run-1", "paused"],
                ["run-1", "queued"],
            ]
            assert {event.run_id for event in seen} == {None}
            await other.ask("run.cancel", run_id="run-1")
            # Its end is told in a transition of its own, and shown until the session knows of it.
            end = await watcher.event()
            if shown(view(end)) is None:
                end = await watcher.event()
            assert shown(view(end)) == ["run-1", "cancelled"]
            message = view(end)["workflowMessage"]
            assert isinstance(message, dict)
            assert (message["kind"], message["triggerTurn"]) == ("terminal", False)

    run(body)


def test_only_a_sessions_own_watchers_hear_of_it(state_dir: Path) -> None:
    """Work of another session, and a run without a session, is nobody's news here."""

    async def body() -> None:
        async with server(state_dir) as bench:
            first, second, other = [await bench.connect() for _ in range(3)]
            await watch(first, "session-1")
            await watch(second, "session-2")
            await bench.started(other, "alone")
            await other.ask("run.cancel", run_id="alone")
            await begin(bench, other, "run-2", "session-2")
            assert shown(view(await second.event())) == ["run-2", "queued"]
            await coordinate(other, "session-2")
            await until(second, "branchReportRequired", wanted=False)
            await nothing(first)

    run(body)


def test_a_run_from_before_the_server_is_its_sessions(state_dir: Path) -> None:
    """A server that was started later knows whose run it is, and tells of its process too."""

    async def body() -> None:
        async with server(state_dir) as bench:
            await begin(bench, await bench.connect())
        async with server(state_dir) as bench:
            watcher, other = await bench.connect(), await bench.connect()
            assert shown(await watch(watcher)) == ["run-1", "queued"]
            await other.ask("run.pause", run_id="run-1")
            assert shown(view(await watcher.event())) == ["run-1", "paused"]
            bench.parts.services.hub.process_changed("run-1")
            assert shown(view(await watcher.event())) == ["run-1", "paused"]

    run(body)


def test_changes_coalesce_for_a_slow_watcher(state_dir: Path) -> None:
    """A client that is behind gets the newest view and never a queue of them."""

    async def body() -> None:
        async with server(state_dir) as bench:
            slow, other = await bench.connect(is_stalling=True), await bench.connect()
            payload: Json = {"subscriptionId": "s", "sessionId": "session-1"}
            request = slow.request("view.session.watch", payload)
            await slow.send(request)
            await trio.testing.wait_all_tasks_blocked()
            await begin(bench, other)
            await other.ask("run.pause", run_id="run-1")
            await slow.response(request)
            assert shown(view(await slow.event())) == ["run-1", "paused"]
            await nothing(slow)

    run(body)


def test_the_view_is_built_once_for_its_watchers(state_dir: Path) -> None:
    """Watchers share what the session works on; each is told of the coordinator as it is to it."""

    async def body() -> None:
        async with server(state_dir) as bench:
            coordinator, watcher = await bench.connect(), await bench.connect()
            await begin(bench, watcher)
            epoch = await coordinate(coordinator)
            own = await until(coordinator, "branchReportRequired", wanted=False)
            other = await watch(watcher)
            assert own["run"] == other["run"]
            told = [(seen["coordinatorEpoch"], seen["coordinatorActive"]) for seen in (own, other)]
            assert told == [(epoch, True), (epoch, False)]

    run(body)


def test_the_newer_of_two_connections_coordinates(state_dir: Path) -> None:
    """Taking a session fences the former coordinator at once, which is told so."""

    async def body() -> None:
        async with server(state_dir) as bench:
            former, newer = await bench.connect(), await bench.connect()
            first = await coordinate(former)
            await until(former, "branchReportRequired", wanted=False)
            second = await coordinate(newer, is_reported=False)
            told = await until(former, "coordinatorEpoch", second)
            assert (told["coordinatorActive"], told["branchReportRequired"]) == (False, True)
            for epoch in (first, second):
                reply = await former.ask("workflowMessage.reportBranch", {**REPORT, **claim(epoch)})
                assert (reply.outcome, code(reply)) == (Outcome.REJECTED, "notCoordinator")
            await report(newer, second)

    run(body)


def test_a_command_in_flight_is_before_the_fence_or_not_at_all(state_dir: Path) -> None:
    """What the former coordinator asked for is committed before its successor is answered."""

    async def body() -> None:
        async with server(state_dir) as bench:
            former, newer = await bench.connect("former"), await bench.connect("newer")
            epoch = await coordinate(former)
            await begin(bench, former)
            ended = await former.ask("run.cancel", run_id="run-1")
            status = members((await newer.ask("view.run.get", run_id="run-1")).receipt)
            revision = status["runRevision"]
            assert ended.outcome is Outcome.ACCEPTED
            assert isinstance(revision, int)
            request = former.request(
                "run.restart", claim(epoch), run_id="run-1", expected_revision=revision
            )
            receipts = bench.receipt_count()
            await former.send(request)
            await coordinate(newer, is_reported=False)
            first = view(await newer.event())
            reply = await former.response(request)
            if reply.outcome is Outcome.ACCEPTED:
                assert shown(first) != ["run-1", "cancelled"]
            else:
                assert (reply.outcome, code(reply)) == (Outcome.REJECTED, "notCoordinator")
                assert shown(first) == ["run-1", "cancelled"]
                assert bench.receipt_count() == receipts
            await nothing(newer)

    run(body)


def test_a_coordinator_sees_what_was_handed_over_before(state_dir: Path) -> None:
    """However long the writer's queue is, the first view holds all that came before the epoch."""

    async def body() -> None:
        async with server(state_dir) as bench:
            former, newer = await bench.connect("former"), await bench.connect("newer")
            await coordinate(former)
            await begin(bench, former)
            writer = bench.parts.services.writer
            for _ in range(WRITER_QUEUE_MAX - 8):
                writer.hand_over(Chore(lambda _: None))
            pause = Order("run.pause", (PauseRun("run-1"),), Actor("control"), "command-1")
            writer.hand_over(pause)
            await coordinate(newer, is_reported=False)
            assert shown(view(await newer.event())) == ["run-1", "paused"]

    run(body)


def test_a_connection_that_ended_coordinates_nothing(state_dir: Path) -> None:
    """Its epoch ends with it, watchers are told, and whoever comes next has a new one."""

    async def body() -> None:
        async with server(state_dir) as bench:
            watcher, former = await bench.connect(), await bench.connect()
            await watch(watcher)
            epoch = await coordinate(former)
            await until(watcher, "coordinatorEpoch", epoch)
            await former.stream.aclose()
            gone = await until(watcher, "coordinatorEpoch", None)
            assert (gone["coordinatorActive"], gone["branchReportRequired"]) == (False, False)
            again = await bench.connect()
            renewed = await coordinate(again, is_reported=False)
            assert renewed > epoch
            reply = await again.ask("workflowMessage.reportBranch", {**REPORT, **claim(epoch)})
            assert (reply.outcome, code(reply)) == (Outcome.REJECTED, "notCoordinator")
            await watcher.stream.aclose()
            await again.stream.aclose()
            await trio.testing.wait_all_tasks_blocked()
            assert bench.parts.services.hub.subscription_count == 0
            assert bench.parts.services.coordinators.of("session-1") is None

    run(body)


def test_unwatch_ends_a_session_and_its_coordination(state_dir: Path) -> None:
    """After the reply nothing more comes, and the connection speaks for nobody."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer, other = await bench.connect(), await bench.connect()
            epoch = await coordinate(peer)
            await until(peer, "branchReportRequired", wanted=False)
            for _ in range(2):
                reply = await peer.ask("view.run.unwatch", {"subscriptionId": "s"})
                assert reply.receipt == {"subscribed": False}
            await begin(bench, other)
            await nothing(peer)
            reply = await peer.ask("workflowMessage.reportBranch", {**REPORT, **claim(epoch)})
            assert code(reply) == "notCoordinator"
            assert await coordinate(peer, "session-2", is_reported=False) > epoch

    run(body)


def test_a_refused_coordinator_fences_nobody(state_dir: Path) -> None:
    """A connection that speaks for one session gets no second one, and that one stays as it is."""

    async def body() -> None:
        async with server(state_dir) as bench:
            first, second = await bench.connect(), await bench.connect()
            await coordinate(first, "session-1")
            epoch = await coordinate(second, "session-2")
            payload: Json = {"subscriptionId": "t", "sessionId": "session-2", "coordinator": True}
            reply = await first.ask("view.session.watch", payload)
            assert (reply.outcome, code(reply)) == (Outcome.REJECTED, "coordinatesAnother")
            await report(second, epoch, "session-2")

    run(body)


def test_of_two_sessions_asked_for_at_once_one_is_coordinated(state_dir: Path) -> None:
    """The request that is refused leaves no subscription either."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            writer = bench.parts.services.writer
            for _ in range(WRITER_QUEUE_MAX - 8):
                writer.hand_over(Chore(lambda _: None))
            requests = [
                peer.request(
                    "view.session.watch",
                    {"subscriptionId": name, "sessionId": name, "coordinator": True},
                )
                for name in ("session-1", "session-2")
            ]
            for request in requests:
                await peer.send(request)
            replies = [await peer.response(request) for request in requests]
            refused = [code(each) for each in replies if each.outcome is Outcome.REJECTED]
            assert refused == ["coordinatesAnother"]
            assert bench.parts.services.hub.subscription_count == 1

    run(body)


def test_a_window_shows_other_nodes(state_dir: Path) -> None:
    """A watcher moves its own window, held inside the run, and lets it follow again."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer, other = await bench.connect(), await bench.connect()
            await begin(bench, other)
            starts: list[Json] = [members((await watch(peer, nodeCursor=1))["run"])["nodeStart"]]
            await watch(other)
            cursors: tuple[Json, ...] = (0, 9, None)
            for cursor in cursors:
                payload: Json = {"subscriptionId": "s", "nodeCursor": cursor}
                reply = await peer.ask("view.session.window", payload)
                assert reply.receipt == {"subscribed": True}
                starts.append(members(view(await peer.event())["run"])["nodeStart"])
            assert starts == [1, 0, 1, 0]
            await nothing(other)
            await peer.ask("view.run.watch", {"subscriptionId": "run"}, run_id="run-1")
            for name in ("run", "unknown"):
                payload = {"subscriptionId": name, "nodeCursor": 0}
                reply = await peer.ask("view.session.window", payload)
                assert (reply.outcome, code(reply)) == (Outcome.NOT_FOUND, "subscriptionMissing")

    run(body)
