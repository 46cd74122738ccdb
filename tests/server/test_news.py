"""What news costs: nothing where nothing changed, and once however many hear of it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import trio
import trio.testing

from pi_workflows.base import ids
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.base.limits import LOAD_WINDOW_MS, VIEW_REVISIONS_KEPT
from pi_workflows.base.sql import Statement
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.run.control import PauseRun, ResumeRun
from pi_workflows.kernel.order import Order
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.mirror import RunMirror
from pi_workflows.views.heads import SQL as GRAPH
from pi_workflows.views.run_patch import SQL as PATCH
from tests.server.bench import Bench, Peer, run, server
from tests.server.coordinating import begin, members, watch
from tests.views.costs import Cost, reading
from tests.views.following import stale_paths
from tests.views.patching import differences

_PATCH: Final = PATCH["deltas"]
_VIEW: Final = GRAPH["node_heads"]


async def _change(bench: Bench, run_id: str, revision: Json, times: int) -> None:
    """Change a run so many times from a revision on, by the writer alone and for no client."""
    assert isinstance(revision, int)
    for number in range(revision + 1, revision + 1 + times):
        answer = await bench.parts.services.writer.submit(_order(run_id, number))
        assert answer.outcome is Outcome.ACCEPTED
        assert answer.views


def _order(run_id: str, revision: int) -> Order:
    """Return what leads a run to a revision."""
    return Order(
        name="test",
        commands=(PauseRun(run_id) if revision % 2 == 0 else ResumeRun(run_id),),
        actor=Actor("control"),
        command_id=ids.random_id("command"),
        run_id=run_id,
    )


async def _watch(peer: Peer, run_id: str = "run-1", **cursor: int) -> Event:
    """Watch a run and return the first event."""
    payload: Any = {"subscriptionId": f"of {run_id}", **cursor}
    reply = await peer.ask("view.run.watch", payload, run_id=run_id)
    assert reply.outcome is Outcome.ACCEPTED
    return await peer.event()


async def _follow(peer: Peer, mirror: RunMirror, revision: int) -> list[Event]:
    """Take events until the mirror is at a revision; return them."""
    events: list[Event] = []
    while mirror.revision != revision or mirror.is_stale:
        events.append(await peer.event())
        assert mirror.take(events[-1]).fault is None
    return events


def _count(cost: Cost, wanted: Statement) -> int:
    """Return how often a statement ran."""
    return sum(wanted.text.rstrip().rstrip(";") in text for text in cost.statements)


def test_an_idle_subscription_reads_nothing(state_dir: Path) -> None:
    """While another run changes, those who watch this one and its session read not one row."""

    async def body() -> None:
        async with server(state_dir) as bench:
            store = bench.parts.services.store
            other = await bench.connect()
            for number in (1, 2):
                await begin(bench, other, f"run-{number}", f"session-{number}")
            peers = [await bench.connect() for _ in range(20)]
            for peer in peers:
                await _watch(peer)
                await watch(peer, "session-1")
            # Whose session the other run is has to be looked up once.
            await _change(bench, "run-2", 1, 2)
            await trio.testing.wait_all_tasks_blocked()
            with reading(store) as cost:
                await _change(bench, "run-2", 3, 40)
                await trio.testing.wait_all_tasks_blocked()
            assert (cost.statements, cost.pages) == ([], 0)
            with reading(store) as cost:
                await _change(bench, "run-1", 1, 1)
                await trio.testing.wait_all_tasks_blocked()
            assert cost.statements != []
            # Nor was anything sent to them: the first that they hear is this change.
            for peer in peers:
                told = [await peer.event(), await peer.event()]
                assert {event.event for event in told} == {
                    EventKind.RUN_PATCH,
                    EventKind.SESSION_SNAPSHOT,
                }
                assert {event.revision for event in told} == {2}

    run(body)


def test_news_are_built_once_for_everybody(state_dir: Path) -> None:
    """Twenty watchers cost one read of the view and one of each patch, also those who come late."""

    async def body() -> None:
        async with server(state_dir) as bench:
            store = bench.parts.services.store
            peers = [await bench.connect() for _ in range(20)]
            await bench.started(peers[0])
            with reading(store) as cost:
                first = [await _watch(peer) for peer in peers]
            assert (_count(cost, _VIEW), _count(cost, _PATCH)) == (1, 0)
            assert all(event.payload == first[0].payload for event in first)
            for revision in (2, 3):
                with reading(store) as cost:
                    await _change(bench, "run-1", revision - 1, 1)
                    await trio.testing.wait_all_tasks_blocked()
                assert _count(cost, _PATCH) == 1
                patches = [await peer.event() for peer in peers]
                assert {event.revision for event in patches} == {revision}
                assert all(event.payload == patches[0].payload for event in patches)
            late = [await bench.connect() for _ in range(4)]
            with reading(store) as cost:
                news = [
                    await _watch(peer, revision=1 + number // 2) for number, peer in enumerate(late)
                ]
            assert [members(event.payload)["fromRevision"] for event in news] == [1, 1, 2, 2]
            # The second of the two patches was there already.
            assert _count(cost, _PATCH) == 1

    run(body)


def test_who_comes_back_gets_what_changed(state_dir: Path) -> None:
    """With the revision that it applied last a client gets a patch, an empty one when none was."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            mirror = RunMirror("run-1")
            assert mirror.take(await _watch(peer)).is_snapshot
            spans: list[tuple[Json, Json]] = []
            for times in (0, 1, 5):
                await peer.stream.aclose()
                await _change(bench, "run-1", spans[-1][1] if spans else 1, times)
                peer = await bench.connect()
                assert mirror.revision is not None
                event = await _watch(peer, revision=mirror.revision)
                assert event.event is EventKind.RUN_PATCH
                patch = members(event.payload)
                spans.append((patch["fromRevision"], patch["toRevision"]))
                assert mirror.take(event).fault is None
                assert not mirror.is_stale
            assert spans == [(1, 1), (1, 2), (2, 7)]
            await _hold(peer, mirror)
            for revision in (0, 8, 10_000):
                assert (await _watch(peer, revision=revision)).event is EventKind.RUN_SNAPSHOT

    run(body)


def test_a_stalled_client_is_right_again_and_delays_nobody(state_dir: Path) -> None:
    """Three hundred commands later it gets one event, a snapshot; meanwhile the others get all."""

    async def body() -> None:
        async with server(state_dir) as bench:
            stalled, other = await bench.connect(is_stalling=True), await bench.connect()
            await bench.started(other)
            mirrors = RunMirror("run-1"), RunMirror("run-1")
            mirrors[0].take(await _watch(stalled))
            mirrors[1].take(await _watch(other))
            began = trio.current_time()
            commands = VIEW_REVISIONS_KEPT + 44
            for revision in range(2, commands + 2):
                await _change(bench, "run-1", revision - 1, 1)
                event = await other.event()
                assert (event.event, event.revision) == (EventKind.RUN_PATCH, revision)
                assert mirrors[1].take(event).fault is None
            # It took nothing of it, and no time went by: nobody waited for it.
            assert trio.current_time() == began
            events = await _follow(stalled, mirrors[0], commands + 1)
            assert [event.revision for event in events] == [2, commands + 1]
            assert events[1].event is EventKind.RUN_SNAPSHOT
            for peer, mirror in zip((stalled, other), mirrors, strict=True):
                await _hold(peer, mirror)
            await _change(bench, "run-1", commands + 1, 1)
            assert (await stalled.event()).event is EventKind.RUN_PATCH

    run(body)


def test_a_loaded_server_sends_fewer_events_than_there_are_changes(state_dir: Path) -> None:
    """Everybody who watches hears of many changes in one patch, and ends at the last."""

    async def body() -> None:
        async with server(state_dir) as bench:
            clock = trio.lowlevel.current_clock()
            assert isinstance(clock, trio.testing.MockClock)
            peers = [await bench.connect() for _ in range(3)]
            await bench.started(peers[0])
            mirrors = [RunMirror("run-1") for _ in peers]
            for peer, mirror in zip(peers, mirrors, strict=True):
                mirror.take(await _watch(peer))
            commands = 4 * LOAD_WINDOW_MS
            for number in range(2, commands + 2, 2):
                clock.jump(0.001)
                group = [_order("run-1", number), _order("run-1", number + 1)]
                waiting = [bench.parts.services.writer.hand_over(order) for order in group]
                for handed in waiting:
                    assert (await handed.answer()).outcome is Outcome.ACCEPTED
            for peer, mirror in zip(peers, mirrors, strict=True):
                events = await _follow(peer, mirror, commands + 1)
                assert {event.event for event in events} == {EventKind.RUN_PATCH}
                spans = [members(event.payload) for event in events]
                # Until the load is known each group is told, and after that a few of them.
                assert 1 < len(events) < 0.7 * commands / 2
                assert spans[0]["fromRevision"] == 1
                assert all(
                    later["fromRevision"] == before["toRevision"]
                    for before, later in pairwise(spans)
                )
                await _hold(peer, mirror)

    run(body)


async def _hold(peer: Peer, mirror: RunMirror) -> None:
    """Hold a mirror to the view of now."""
    now: Any = (await peer.ask("view.run.get", run_id=mirror.run_id)).receipt
    view: Any = mirror.view
    assert not mirror.is_stale
    assert differences(view, now, stale_paths(mirror)) == []
