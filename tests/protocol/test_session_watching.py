"""A session on the client's side: its epoch, its view, and what a lost connection leaves."""

from __future__ import annotations

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.protocol import envelope
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.connection import ClientState
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.session_mirror import SessionMirror
from pi_workflows.protocol.subscription import Subscription
from pi_workflows.protocol.views import SubscriptionFailure
from pi_workflows.protocol.watching import News, Watch, Watching
from tests.protocol.conversation import answer, greet, ready, sent

SESSION = "session-1"


def session_view(
    epoch: int | None = None, *, is_own: bool = False, **more: Json
) -> dict[str, Json]:
    """Return a session view with what matters here."""
    return {
        "schema": "pi-workflows.session-view.v1",
        "sessionId": SESSION,
        "run": None,
        "coordinatorEpoch": epoch,
        "coordinatorActive": is_own,
        **more,
    }


def snapshot(payload: Json, name: str = "s", revision: int = 1) -> Event:
    """Return the event that brings a session view."""
    return Event(
        subscription_id=name,
        event=EventKind.SESSION_SNAPSHOT,
        payload=payload,
        revision=revision,
    )


def tell(state: ClientState, subscription: Subscription, payload: Json) -> None:
    """Send a session view."""
    state.receive(envelope.encode(snapshot(payload, subscription.subscription_id)))


def coordinated(epoch: int = 7) -> tuple[ClientState, Watching, Watch[SessionMirror]]:
    """Return a client that coordinates a session."""
    state = ready()
    watching = Watching(state)
    watch, _ = watching.session(SESSION, is_coordinator=True)
    [request] = sent(state)
    assert request.operation is Operation.VIEW_SESSION_WATCH
    answer(state, request, receipt={"subscribed": True, "coordinatorEpoch": epoch})
    return state, watching, watch


def epoch_of(subscription: Subscription) -> int | None:
    """Return the epoch that a subscription tells."""
    assert subscription.session is not None
    return subscription.session.epoch


def test_the_reply_tells_the_epoch() -> None:
    """Before a view came the epoch is there to report the branch with."""
    _, watching, watch = coordinated()
    assert epoch_of(watch.subscription) == 7
    assert (watch.mirror.view, watch.mirror.is_stale, watching.take()) == (None, True, None)


def test_who_coordinates_nothing_has_no_epoch() -> None:
    """A watcher sees whose epoch the session has, and holds none."""
    state = ready()
    subscription, _ = state.watch_session(SESSION)
    [request] = sent(state)
    assert request.payload == {
        "subscriptionId": subscription.subscription_id,
        "sessionId": SESSION,
    }
    answer(state, request, receipt={"subscribed": True})
    tell(state, subscription, session_view(7))
    assert epoch_of(subscription) is None
    event = state.take_event(subscription)
    assert event is not None
    assert event.payload == session_view(7)


@pytest.mark.parametrize(
    "payload",
    [session_view(8), session_view(None), {**session_view(7), "coordinatorEpoch": "7"}, []],
)
def test_a_view_of_another_coordinator_ends_the_epoch(payload: Json) -> None:
    """Once somebody else coordinates, or nobody, the subscription says so."""
    state, _, watch = coordinated()
    tell(state, watch.subscription, session_view(7, is_own=True))
    assert epoch_of(watch.subscription) == 7
    tell(state, watch.subscription, payload)
    assert epoch_of(watch.subscription) is None


def test_each_connection_has_an_epoch_of_its_own() -> None:
    """A lost connection ends the epoch; the next one takes the session again under a new one."""
    state, watching, watch = coordinated()
    tell(state, watch.subscription, session_view(7, is_own=True))
    watching.take()
    state.disconnected()
    assert epoch_of(watch.subscription) is None
    news = watching.take()
    assert news is not None
    assert news.change.failure is not None
    assert (watch.mirror.is_stale, watch.mirror.view) == (True, session_view(7, is_own=True))
    greet(state)
    [request] = sent(state)
    assert request.payload == {
        "subscriptionId": watch.subscription.subscription_id,
        "sessionId": SESSION,
        "coordinator": True,
    }
    answer(state, request, receipt={"subscribed": True, "coordinatorEpoch": 9})
    assert (epoch_of(watch.subscription), watch.mirror.is_stale) == (9, True)
    tell(state, watch.subscription, session_view(9, is_own=True))
    assert watching.take() == News(watch, Change(is_snapshot=True))
    assert not watch.mirror.is_stale


def test_a_request_of_a_lost_epoch_is_sent_again_as_it_was() -> None:
    """The server refuses it, changing nothing; the key is what the caller asks with again."""
    state, _, watch = coordinated()
    payload: Json = {"targetSessionId": SESSION, "coordinatorEpoch": 7}
    pending = state.request(
        Operation.RUN_RESTART, payload, run_id="run-1", expected_revision=3, key="key"
    )
    sent(state)
    state.disconnected()
    greet(state)
    restored, again = sent(state)
    assert restored.operation is Operation.VIEW_SESSION_WATCH
    assert (again.operation, again.payload) == (Operation.RUN_RESTART, payload)
    assert again.idempotency_key == "key"
    answer(state, again, Outcome.REJECTED, receipt={"code": "notCoordinator"})
    reply = pending.reply()
    assert reply is not None
    assert reply.refusal is not None
    assert reply.refusal.code == "notCoordinator"
    assert watch.subscription.session is not None


def test_a_moved_window_stays_moved() -> None:
    """A window is told to the server, and to the next one without being asked."""
    state = ready()
    subscription, _ = state.watch_session(SESSION, node_cursor=2)
    [request] = sent(state)
    assert isinstance(request.payload, dict)
    assert request.payload["nodeCursor"] == 2
    answer(state, request, receipt={"subscribed": True})
    name = subscription.subscription_id
    cursors: tuple[int | None, ...] = (5, None, 4)
    for cursor in cursors:
        assert state.move(subscription, cursor) is not None
        [request] = sent(state)
        assert request.operation is Operation.VIEW_SESSION_WINDOW
        assert request.payload == {"subscriptionId": name, "nodeCursor": cursor}
    state.disconnected()
    assert state.move(subscription, 6) is None
    greet(state)
    first = sent(state)[0]
    assert first.payload == {"subscriptionId": name, "sessionId": SESSION, "nodeCursor": 6}


def test_only_the_newest_view_waits() -> None:
    """A client that is behind takes the newest view, once."""
    state, watching, watch = coordinated()
    for epoch in (7, 7, 8):
        tell(state, watch.subscription, session_view(epoch))
    assert watching.take() == News(watch, Change(is_snapshot=True))
    assert watch.mirror.view == session_view(8)
    assert watching.take() is None


def test_the_end_of_a_watch_ends_its_subscription() -> None:
    """The server is told, so that it no longer takes the client for the coordinator."""
    state, watching, watch = coordinated()
    watching.end(watch)
    [request] = sent(state)
    assert request.operation is Operation.VIEW_RUN_UNWATCH
    assert request.payload == {"subscriptionId": watch.subscription.subscription_id}


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (snapshot(session_view(7, sessionId="session-2")), "wrongSession"),
        (snapshot(session_view(7, schema="pi-workflows.run-view.v1")), "viewInvalid"),
        (snapshot(None), "viewInvalid"),
        (snapshot([session_view(7)]), "viewInvalid"),
        (
            Event(subscription_id="s", event=EventKind.RUN_SNAPSHOT, payload=session_view(7)),
            "eventUnknown",
        ),
        (Event(subscription_id="s", event=EventKind.UNAVAILABLE, payload={}), "eventInvalid"),
    ],
)
def test_what_is_no_view_leaves_the_last_good_one(event: Event, code: str) -> None:
    """The last good view stays, for showing only, until a good one comes."""
    mirror = SessionMirror(SESSION)
    assert mirror.take(snapshot(session_view(7))) == Change(is_snapshot=True)
    assert mirror.take(event) == Change(fault=code)
    assert (mirror.view, mirror.is_stale) == (session_view(7), True)
    assert mirror.take(snapshot(session_view(8))) == Change(is_snapshot=True)
    assert (mirror.view, mirror.is_stale) == (session_view(8), False)


def test_a_subscription_that_failed_is_stale() -> None:
    """What the server cannot show any more is shown as it was."""
    mirror = SessionMirror(SESSION)
    mirror.take(snapshot(session_view(7)))
    failure = SubscriptionFailure(reason_code="projection_failed", message="no")
    event = Event(subscription_id="s", event=EventKind.UNAVAILABLE, payload=failure.document())
    change = mirror.take(event)
    assert (change.failure, change.is_end, mirror.is_stale) == (failure, True, True)
