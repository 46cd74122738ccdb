"""Who watches hears of every change, of the newest state only, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import trio
import trio.testing

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.protocol.envelope import Event, EventKind
from tests.server.bench import Peer, run, server


def _members(value: Json) -> dict[str, Json]:
    """Return a JSON object's members."""
    assert isinstance(value, dict)
    return value


def _status(event: Event) -> Json:
    """Return the display status that a run's snapshot shows."""
    return _members(_members(event.payload)["display"])["status"]


async def _watch(peer: Peer, run_id: str = "run-1", subscription_id: str = "s") -> Event:
    """Watch a run and return the first event."""
    reply = await peer.ask("view.run.watch", {"subscriptionId": subscription_id}, run_id=run_id)
    assert (reply.outcome, reply.receipt) == (Outcome.ACCEPTED, {"subscribed": True})
    return await peer.event()


def test_every_change_is_pushed(state_dir: Path) -> None:
    """A watched run sends a snapshot now and a patch after each command, at its revision."""

    async def body() -> None:
        async with server(state_dir) as bench:
            watcher, other = await bench.connect(), await bench.connect()
            await bench.started(other)
            seen = [await _watch(watcher)]
            for operation in ("run.pause", "run.resume", "run.cancel"):
                await other.ask(operation, run_id="run-1")
                seen.append(await watcher.event())
            assert [event.event for event in seen] == [
                EventKind.RUN_SNAPSHOT,
                *[EventKind.RUN_PATCH] * 3,
            ]
            assert [_status(event) for event in seen] == ["queued", "paused", "queued", "cancelled"]
            assert [event.revision for event in seen] == [1, 2, 3, 5]
            patches = [_members(event.payload) for event in seen[1:]]
            spans = [(patch["fromRevision"], patch["toRevision"]) for patch in patches]
            assert spans == [(1, 2), (2, 3), (3, 5)]

    run(body)


def test_changes_coalesce_for_a_slow_client(state_dir: Path) -> None:
    """A client that is behind gets one event on the wire, then the newest state, never a queue."""

    async def body() -> None:
        async with server(state_dir) as bench:
            slow, other = await bench.connect(is_stalling=True), await bench.connect()
            await bench.started(other)
            request = slow.request("view.run.watch", {"subscriptionId": "s"}, run_id="run-1")
            await slow.send(request)
            await trio.testing.wait_all_tasks_blocked()
            for operation in ("run.pause", "run.cancel"):
                await other.ask(operation, run_id="run-1")
            assert (await slow.response(request)).outcome is Outcome.ACCEPTED
            assert _status(await slow.event()) == "cancelled"
            with trio.move_on_after(1) as nothing_more:
                await slow.event()
            assert nothing_more.cancelled_caught

    run(body)


def test_a_process_fact_is_pushed_without_a_commit(state_dir: Path) -> None:
    """A runner that began or ended changes the display at the same revision."""

    async def body() -> None:
        async with server(state_dir) as bench:
            watcher = await bench.connect()
            await bench.started(watcher)
            first = await _watch(watcher)
            bench.parts.services.hub.process_changed("run-1")
            again = await watcher.event()
            assert (again.event, again.revision) == (EventKind.RUN_PATCH, first.revision)
            patch = _members(again.payload)
            assert (patch["fromRevision"], patch["toRevision"], patch["deltas"]) == (1, 1, [])
            assert patch["display"] == _members(first.payload)["display"]

    run(body)


def test_a_reader_goes_on_from_its_revision(state_dir: Path) -> None:
    """Who names a retained revision gets what changed since; any other one gets a snapshot."""

    async def body() -> None:
        async with server(state_dir) as bench:
            other = await bench.connect()
            await bench.started(other)
            for operation in ("run.pause", "run.resume", "run.pause"):
                await other.ask(operation, run_id="run-1")
            told: dict[int, tuple[EventKind, Json]] = {}
            for revision in (0, 1, 3, 4, 5, 99):
                watcher = await bench.connect()
                payload: dict[str, Json] = {"subscriptionId": "s", "revision": revision}
                await watcher.ask("view.run.watch", payload, run_id="run-1")
                event = await watcher.event()
                told[revision] = event.event, _members(event.payload).get("fromRevision")
            assert told == {
                0: (EventKind.RUN_SNAPSHOT, None),
                1: (EventKind.RUN_PATCH, 1),
                3: (EventKind.RUN_PATCH, 3),
                4: (EventKind.RUN_PATCH, 4),
                5: (EventKind.RUN_SNAPSHOT, None),
                99: (EventKind.RUN_SNAPSHOT, None),
            }

    run(body)


def test_the_run_list_is_pushed(state_dir: Path) -> None:
    """A watched list sends its first page now and after each change of any run, numbered."""

    async def body() -> None:
        async with server(state_dir) as bench:
            watcher, other = await bench.connect(), await bench.connect()
            await watcher.ask("view.runs.watch", {"subscriptionId": "list", "limit": 2})
            totals: list[Json] = []
            for number in range(4):
                event = await watcher.event()
                assert (event.event, event.revision) == (EventKind.RUNS, number + 1)
                page = _members(event.payload)
                totals.append(page["total"])
                items = page["items"]
                assert isinstance(items, list)
                assert len(items) == min(number, 2)
                if number < 3:
                    await bench.started(other, f"run-{number}")
            assert totals == [0, 1, 2, 3]

    run(body)


def test_a_run_that_is_not_there_is_not_watched(state_dir: Path) -> None:
    """Watching an unknown run is refused, and nothing comes when it is made later."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            reply = await peer.ask("view.run.watch", {"subscriptionId": "s"}, run_id="run-1")
            assert reply.outcome is Outcome.NOT_FOUND
            await bench.started(peer)
            with trio.move_on_after(1) as nothing:
                await peer.event()
            assert nothing.cancelled_caught

    run(body)


def test_unwatch_ends_a_subscription(state_dir: Path) -> None:
    """After the reply to `view.run.unwatch` nothing more comes; ending it twice is harmless."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            await _watch(peer)
            for _ in range(2):
                reply = await peer.ask("view.run.unwatch", {"subscriptionId": "s"})
                assert reply.receipt == {"subscribed": False}
            await peer.ask("run.cancel", run_id="run-1")
            with trio.move_on_after(1) as nothing:
                await peer.event()
            assert nothing.cancelled_caught

    run(body)


def test_a_subscription_replaces_one_of_its_name(state_dir: Path) -> None:
    """One name is one subscription: the later run is watched, the earlier one is not."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer, other = await bench.connect(), await bench.connect()
            for run_id in ("run-1", "run-2"):
                await bench.started(other, run_id)
                await _watch(peer, run_id)
            await other.ask("run.cancel", run_id="run-1")
            await other.ask("run.cancel", run_id="run-2")
            event = await peer.event()
            assert (event.run_id, _status(event)) == ("run-2", "cancelled")

    run(body)


def test_a_view_that_cannot_be_shown_ends_its_subscription_only(state_dir: Path) -> None:
    """A projection fault is told to its subscription; the connection and the others go on."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            for run_id in ("run-1", "run-2"):
                await bench.started(peer, run_id)
            await _watch(peer, "run-2", "of run-2")
            with bench.damaged_views("run-1"):
                failed = await _watch(peer, "run-1", "of run-1")
            assert failed.event is EventKind.UNAVAILABLE
            assert failed.subscription_id == "of run-1"
            assert _members(failed.payload)["reasonCode"] == "projection_failed"
            await peer.ask("run.pause", run_id="run-2")
            assert (await peer.event()).subscription_id == "of run-2"
            await peer.ask("run.resume", run_id="run-1")
            assert sum("projection.failed" in line for line in bench.log_lines()) == 1

    run(body)


def test_a_connection_that_ended_is_forgotten(state_dir: Path) -> None:
    """A watcher that leaves costs nothing afterwards."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer, other = await bench.connect(), await bench.connect()
            await bench.started(other)
            await _watch(peer)
            await peer.ask("view.runs.watch", {"subscriptionId": "list"})
            await peer.stream.aclose()
            await trio.testing.wait_all_tasks_blocked()
            assert bench.parts.services.hub.subscription_count == 0
            assert (await other.ask("run.cancel", run_id="run-1")).outcome is Outcome.ACCEPTED

    run(body)
