"""Mirrors and their changes for whoever waits for them."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from pi_workflows.base.errors import NotFound, Outcome, ProtocolViolation
from pi_workflows.protocol.change import Change
from tests.client import newsreel
from tests.client.peer import Listener, response, serving
from tests.client.stage import StillClock, new_client, pause
from tests.protocol.run_news import RUN


def test_a_mirror_comes_with_each_change(path: Path, clock: StillClock) -> None:
    """A run is mirrored over a lost connection, from what was applied, until it is gone."""
    watches: list[dict[str, Any]] = []

    def script(listener: Listener) -> None:
        connection = listener.accept()
        request = connection.request()
        watches.append(request["payload"])
        connection.send(newsreel.begun(request, 4) + newsreel.small(request, 5))
        connection.close()
        connection = listener.accept()
        request = connection.request()
        watches.append(request["payload"])
        connection.send(response(request) + newsreel.small(request, 6))
        connection.send(response(connection.request()) + newsreel.removed(request))
        connection.until_closed()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        changes: list[Change] = []
        with client.watch_run(RUN) as feed:
            for mirror, change in feed:
                changes.append(change)
                if mirror.revision == 6 and not change.is_end:
                    assert pause(client) is Outcome.ACCEPTED
            assert (feed.mirror.revision, feed.mirror.is_stale) == (6, True)
    whole, lost, restored, end = changes
    assert whole.is_snapshot
    assert (lost.failure is not None, lost.is_end) == (True, False)
    assert restored == Change(is_restored=True, targets={"summary/": 6})
    assert end.is_end
    name = watches[0]["subscriptionId"]
    assert watches == [{"subscriptionId": name}, {"subscriptionId": name, "revision": 5}]


def test_something_typed_ends_the_waiting(path: Path, clock: StillClock) -> None:
    """Beside a descriptor one waits for both: news comes first, then what can be read there."""
    told = threading.Event()

    def script(listener: Listener) -> None:
        connection = listener.accept()
        request = connection.request()
        connection.send(newsreel.begun(request, 5))
        told.wait()
        connection.send(newsreel.small(request, 6))
        connection.close()

    reading, writing = os.pipe()
    with serving(path, script), new_client(path, clock) as client:
        feed = client.watch_run(RUN)
        feed.open()
        first = client.next_news(beside=reading)
        assert first is not None
        assert first.change.is_snapshot
        os.write(writing, b"typed")
        assert client.next_news(beside=reading) is None
        assert os.read(reading, 5) == b"typed"
        told.set()
        second = client.next_news(beside=reading)
        assert second is not None
        assert feed.mirror.revision == 6
        lost = client.next_news(beside=reading)
        assert lost is not None
        assert lost.change.failure is not None
        # While the client waits for its next attempt, too.
        os.write(writing, b"again")
        assert client.next_news(beside=reading) is None
    os.close(reading)
    os.close(writing)


def test_a_fault_is_repaired(path: Path, clock: StillClock) -> None:
    """A patch that does not fit makes the client watch anew, without being asked."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        request = connection.request()
        connection.send(newsreel.begun(request, 4) + newsreel.small(request, 9))
        again = connection.request()
        assert again["payload"] == request["payload"]
        connection.send(newsreel.begun(again, 9))
        assert connection.request()["operation"] == "view.run.unwatch"
        connection.send(response(connection.request()))
        connection.until_closed()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        with client.watch_run(RUN) as feed:
            while feed.mirror.is_stale:
                client.next_news(feed.watch)
            assert feed.mirror.revision == 9
        assert pause(client) is Outcome.ACCEPTED


def test_a_list_comes_whole(path: Path, clock: StillClock) -> None:
    """The pages of the run list are collected before anything is told."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        connection.send(newsreel.listed(connection.request()))
        for _ in range(2):
            connection.send(newsreel.more(connection.request()))
        connection.until_closed()
        connection.close()

    with serving(path, script), new_client(path, clock) as client, client.watch_list(None) as feed:
        mirror, change = next(feed)
        assert change == Change(is_snapshot=True)
        assert mirror.items == ("one", "two", "three")
        assert client.next_news(timeout_ms=0) is None


def test_an_unknown_run_is_not_mirrored(path: Path, clock: StillClock) -> None:
    """The refusal is raised, and the server is not told about what it refused."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        connection.send(response(connection.request(), "notFound"))
        request = connection.request()
        assert request["operation"] == "run.pause"
        connection.send(response(request))
        connection.until_closed()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        with pytest.raises(NotFound), client.watch_run(RUN):
            pass
        assert pause(client) is Outcome.ACCEPTED


def test_content_is_fetched_and_verified(path: Path, clock: StillClock) -> None:
    """A value behind a reference comes in parts; content of another run is refused."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        for _ in range(2):
            connection.send(newsreel.chunk(connection.request()))
        connection.send(newsreel.chunk({**connection.request(), "runId": "other"}))
        connection.until_closed()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        assert client.content(RUN, {"plain": 1}) == {"plain": 1}
        assert client.content(RUN, newsreel.REFERENCE) == ["a", "b"]
        with pytest.raises(ProtocolViolation):
            client.content(RUN, newsreel.REFERENCE)
