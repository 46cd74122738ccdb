"""The feed of a session, in the client that waits and in those of both event loops."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pi_workflows.protocol.session_mirror import SessionMirror
from tests.client.async_stage import LOOPS, Stage, run_test
from tests.client.peer import Listener, line, response, serving
from tests.client.stage import StillClock, new_client

RECEIPT = {"subscribed": True, "coordinatorEpoch": 3}


def news(subscription_id: str, epoch: int) -> bytes:
    """Return an event with a session view."""
    payload = {
        "schema": "pi-workflows.session-view.v1",
        "sessionId": "session-1",
        "coordinatorEpoch": epoch,
        "coordinatorActive": True,
    }
    return line(
        {
            "type": "event",
            "event": "session_snapshot",
            "subscriptionId": subscription_id,
            "revision": 1,
            "payload": payload,
        }
    )


def epoch_shown(mirror: SessionMirror) -> object:
    """Return the epoch that a mirror's view shows."""
    assert mirror.view is not None
    return mirror.view["coordinatorEpoch"]


def test_a_session_is_mirrored(path: Path, clock: StillClock) -> None:
    """Entering begins it, each change is a turn of the loop, leaving ends it."""
    asked: list[dict[str, Any]] = []

    def script(listener: Listener) -> None:
        connection = listener.accept()
        asked.append(connection.request())
        name = asked[0]["payload"]["subscriptionId"]
        connection.send(response(asked[0], receipt=RECEIPT) + news(name, 3))
        connection.until_closed()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        with client.watch_session("session-1", is_coordinator=True, node_cursor=2) as feed:
            mirror, change = next(iter(feed))
            session = feed.watch.subscription.session
        assert change.is_snapshot
        assert session is not None
        assert (epoch_shown(mirror), session.epoch) == (3, 3)
    assert asked[0]["operation"] == "view.session.watch"
    assert {**asked[0]["payload"], "subscriptionId": "s"} == {
        "subscriptionId": "s",
        "sessionId": "session-1",
        "coordinator": True,
        "nodeCursor": 2,
    }


@pytest.mark.parametrize("loop", LOOPS)
def test_a_session_is_mirrored_in_an_event_loop(loop: str) -> None:
    """A session's feed survives a lost connection, under the epoch of the next one."""

    async def test(stage: Stage) -> None:
        async def script() -> None:
            for epoch in (3, 4):
                connection = await stage.server.accept()
                request = await connection.request()
                receipt = {"subscribed": True, "coordinatorEpoch": epoch}
                await connection.send(response(request, receipt=receipt))
                await connection.send(news(request["payload"]["subscriptionId"], epoch))
                if epoch == 4:
                    await connection.until_closed()
                await connection.close()

        async with stage.tasks() as tasks:
            tasks.start(script)
            client = await tasks.open()
            async with client.watch_session("session-1", is_coordinator=True) as feed:
                async for mirror, _ in feed:
                    if not mirror.is_stale and epoch_shown(mirror) == 4:
                        break
                session = feed.watch.subscription.session
            client.close()
        assert session is not None
        assert session.epoch == 4

    run_test(loop, test)
