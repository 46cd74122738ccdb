"""The client's state without a socket: what it sends on each connection, what it takes from it."""

from __future__ import annotations

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    LimitExceeded,
    NotFound,
    Outcome,
    OutcomeUnknown,
    PayloadInvalid,
    ProtocolViolation,
    Unavailable,
)
from pi_workflows.base.limits import CLIENT_BACKLOG_BYTES_MAX, FRAME_BYTES_MAX
from pi_workflows.protocol import envelope
from pi_workflows.protocol.connection import ClientState, Pending
from pi_workflows.protocol.envelope import Event, EventKind, Hello, Response
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from tests.protocol.conversation import VERSION, answer, greet, new_state, ready, sent, tell


def _pause(state: ClientState, key: str | None = None) -> Pending:
    """Ask to pause a run."""
    return state.request(Operation.RUN_PAUSE, {}, run_id="build-1", key=key)


def _reason(event: Event | None) -> object:
    """Return why a subscription is unavailable."""
    assert event is not None
    assert event.event is EventKind.UNAVAILABLE
    assert isinstance(event.payload, dict)
    return event.payload["reasonCode"]


def test_a_request_gets_its_reply() -> None:
    """Replies may come in any order; each goes to its request."""
    state = ready()
    first, second = _pause(state), state.request(Operation.SERVER_STATUS, {})
    sent_first, sent_second = sent(state)
    assert (sent_first.operation, sent_first.run_id) == (Operation.RUN_PAUSE, "build-1")
    assert state.outgoing() == b""
    answer(state, sent_second, receipt={"state": "running"})
    assert first.reply() is None
    assert second.reply() == Reply(Outcome.ACCEPTED, receipt={"state": "running"})
    answer(state, sent_first, Outcome.CONFLICT)
    assert first.reply() == Reply(Outcome.CONFLICT)


def test_nothing_is_sent_before_hello() -> None:
    """A request waits for the server's hello."""
    state = new_state()
    pending = _pause(state)
    state.connected()
    assert state.outgoing() == b""
    assert (state.is_ready, state.server_version, pending.was_sent) == (False, None, False)
    greet(state)
    assert (state.is_ready, state.server_version, pending.was_sent) == (True, VERSION, True)
    assert [request.operation for request in sent(state)] == [Operation.RUN_PAUSE]


def test_a_resend_has_the_same_key_and_a_new_request_id() -> None:
    """What was not answered is sent again on the next connection, as the same request."""
    state = ready()
    pending = _pause(state)
    [first] = sent(state)
    state.disconnected()
    assert state.outgoing() == b""
    greet(state)
    [second] = sent(state)
    assert second.request_id != first.request_id
    assert second == first.model_copy(update={"request_id": second.request_id})
    answer(state, second, Outcome.ADOPTED)
    assert pending.reply() == Reply(Outcome.ADOPTED)
    state.disconnected()
    greet(state)
    assert sent(state) == []


def test_a_late_reply_is_ignored() -> None:
    """A reply to a request ID of an earlier connection, or to one given up, is nobody's."""
    state = ready()
    pending = _pause(state)
    [first] = sent(state)
    state.disconnected()
    greet(state)
    answer(state, first, Outcome.REJECTED)
    assert pending.reply() is None
    [second] = sent(state)
    state.give_up(pending)
    answer(state, second)
    with pytest.raises(OutcomeUnknown):
        pending.reply()


def test_a_key_of_the_caller_is_used() -> None:
    """A command is repeated under the key of an earlier one by giving that key."""
    state = ready()
    _pause(state, key="key-of-mine")
    [request] = sent(state)
    assert request.idempotency_key == "key-of-mine"
    assert request.client_id == "client-1"


def test_a_command_that_was_sent_is_unknown_when_given_up() -> None:
    """Only a change that the server may have seen is unknown, and the error names its key."""
    state = ready()
    command, read = _pause(state, key="key-7"), state.request(Operation.RUN_LIST, {})
    state.disconnected()
    unsent = _pause(state)
    for pending in (command, read, unsent):
        state.give_up(pending)
    with pytest.raises(OutcomeUnknown) as unknown:
        command.reply()
    assert "key-7" in (unknown.value.hint or "")
    for pending in (read, unsent):
        with pytest.raises(Unavailable) as unavailable:
            pending.reply()
        assert unavailable.value.reason_code == "serverUnreachable"
    greet(state)
    assert sent(state) == []


def test_a_request_that_would_be_refused_is_not_sent() -> None:
    """Payload, envelope and size are checked before anything leaves."""
    state = ready()
    with pytest.raises(PayloadInvalid) as refused:
        state.request(Operation.RUN_LIST, {"limit": 0})
    assert refused.value.field == "limit"
    with pytest.raises(PayloadInvalid) as refused:
        state.request(Operation.RUN_PAUSE, {}, run_id="")
    assert refused.value.field == "runId"
    payload: Json = {"requestId": "r", "submissionId": "s", "input": "x" * FRAME_BYTES_MAX}
    with pytest.raises(LimitExceeded):
        state.request(Operation.CHECKPOINT_ANSWER, payload, run_id="build-1")
    assert sent(state) == []
    assert state.is_idle


def test_a_server_of_another_version_is_asked_for_little() -> None:
    """Status and stop go to any version; everything else asks for matching packages."""
    state = new_state()
    early = _pause(state)
    greet(state, "9.9.9")
    with pytest.raises(Unavailable) as mismatch:
        early.reply()
    assert mismatch.value.reason_code == "versionMismatch"
    assert "9.9.9" in mismatch.value.message
    assert VERSION in mismatch.value.message
    assert "state" not in mismatch.value.message
    with pytest.raises(Unavailable):
        _pause(state)
    with pytest.raises(Unavailable):
        state.watch("build-1")
    state.request(Operation.SERVER_STATUS, {})
    state.request(Operation.SERVER_STOP, {})
    assert [request.operation for request in sent(state)] == [
        Operation.SERVER_STATUS,
        Operation.SERVER_STOP,
    ]


def test_a_subscription_ends_when_another_version_comes_back() -> None:
    """After an upgrade under a client its subscriptions say why they tell nothing more."""
    state = ready()
    subscription, _ = state.watch("build-1")
    [request] = sent(state)
    answer(state, request)
    state.disconnected()
    greet(state, "9.9.9")
    assert sent(state) == []
    assert _reason(state.take_event(subscription)) == "version_mismatch"
    assert state.is_idle


def test_a_subscription_is_restored_from_what_was_taken() -> None:
    """The next connection begins with the subscriptions, at the revision that the caller has."""
    state = ready()
    subscription, pending = state.watch("build-1", revision=3)
    [watch] = sent(state)
    assert watch.operation is Operation.VIEW_RUN_WATCH
    assert watch.payload == {"subscriptionId": subscription.subscription_id, "revision": 3}
    restored_before = state.is_restored
    answer(state, watch, receipt={"subscribed": True})
    assert pending.reply() is not None
    assert (restored_before, state.is_restored) == (False, True)
    tell(state, subscription.subscription_id, 4)
    taken = state.take_event(subscription)
    assert taken is not None
    assert taken.revision == 4
    tell(state, subscription.subscription_id, 5)  # never taken: the caller does not have it
    command = _pause(state)
    sent(state)
    state.disconnected()
    assert _reason(state.take_event()) == "connection_lost"
    greet(state)
    restored, resent = sent(state)
    assert restored.payload == {"subscriptionId": subscription.subscription_id, "revision": 4}
    assert restored.request_id != watch.request_id
    assert resent.operation is Operation.RUN_PAUSE
    restored_before = state.is_restored
    answer(state, restored, receipt={"subscribed": True})
    assert (restored_before, state.is_restored) == (False, True)
    assert command.reply() is None


def test_a_first_watch_is_repeated_once() -> None:
    """A subscription whose first answer was lost is begun once on the next connection."""
    state = ready()
    subscription, pending = state.watch(None, limit=5)
    sent(state)
    state.disconnected()
    assert state.take_event(subscription) is None
    greet(state)
    [again] = sent(state)
    assert again.operation is Operation.VIEW_RUNS_WATCH
    assert again.payload == {"subscriptionId": subscription.subscription_id, "limit": 5}
    answer(state, again, receipt={"subscribed": True})
    assert pending.reply() == Reply(Outcome.ACCEPTED, receipt={"subscribed": True})


def test_a_watch_that_was_given_up_is_not_restored() -> None:
    """A caller that went away before its subscription began has none, and the server learns it."""
    state = ready()
    subscription, pending = state.watch("build-1")
    [_] = sent(state)
    state.give_up(pending)
    [unwatch] = sent(state)
    assert unwatch.payload == {"subscriptionId": subscription.subscription_id}
    state.disconnected()
    greet(state)
    assert sent(state) == []
    assert state.is_idle


def test_a_refused_watch_leaves_nothing() -> None:
    """A subscription that the server refuses is its caller's error, and is not restored."""
    state = ready()
    subscription, pending = state.watch("build-1")
    [watch] = sent(state)
    answer(state, watch, Outcome.NOT_FOUND)
    reply = pending.reply()
    assert reply is not None
    with pytest.raises(NotFound):
        reply.done()
    tell(state, subscription.subscription_id, 1)
    assert state.take_event() is None
    state.disconnected()
    greet(state)
    assert sent(state) == []


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [(Outcome.NOT_FOUND, "run_removed"), (Outcome.UNAVAILABLE, "projection_failed")],
)
def test_a_subscription_that_cannot_be_restored_says_so(outcome: Outcome, reason: str) -> None:
    """When its run is gone, a subscription ends with an event: nobody waits for its request."""
    state = ready()
    subscription, _ = state.watch("build-1")
    [watch] = sent(state)
    answer(state, watch)
    state.disconnected()
    greet(state)
    [again] = sent(state)
    answer(state, again, outcome)
    assert _reason(state.take_event(subscription)) == reason
    assert state.is_idle


def test_the_newest_event_counts() -> None:
    """Each event is whole: it replaces one not taken. The longest waiting subscription is first."""
    state = ready()
    first, _ = state.watch("build-1")
    second, _ = state.watch("build-2")
    for revision in (1, 2, 3):
        tell(state, first.subscription_id, revision)
        tell(state, second.subscription_id, revision * 10, run_id="build-2")
    events = [state.take_event(), state.take_event(), state.take_event()]
    assert [event and event.revision for event in events] == [3, 30, None]
    assert (first.revision, second.revision) == (3, 30)


def test_a_subscription_that_ended_tells_nothing() -> None:
    """After unwatch no event is kept, and the server is told."""
    state = ready()
    subscription, _ = state.watch("build-1")
    [watch] = sent(state)
    answer(state, watch)
    tell(state, subscription.subscription_id, 1)
    assert state.unwatch(subscription) is not None
    [unwatch] = sent(state)
    assert unwatch.operation is Operation.VIEW_RUN_UNWATCH
    assert unwatch.payload == {"subscriptionId": subscription.subscription_id}
    tell(state, subscription.subscription_id, 2)
    assert state.take_event() is None
    assert state.unwatch(subscription) is None
    other, _ = state.watch("build-1")
    sent(state)
    state.disconnected()
    assert state.unwatch(other) is None


def test_the_end_of_a_subscription_needs_no_other_connection() -> None:
    """A lost connection has ended it: the server is not called back to be told."""
    state = ready()
    subscription, _ = state.watch("build-1")
    [watch] = sent(state)
    answer(state, watch)
    pending = state.unwatch(subscription)
    assert pending is not None
    state.disconnected()
    assert pending.reply() == Reply(Outcome.ACCEPTED, receipt={"subscribed": False})
    assert state.is_idle


def test_a_failed_projection_ends_the_subscription() -> None:
    """The server dropped it, so it is not restored."""
    state = ready()
    subscription, _ = state.watch("build-1")
    [watch] = sent(state)
    answer(state, watch)
    tell(
        state,
        subscription.subscription_id,
        1,
        event=EventKind.UNAVAILABLE,
        payload={"reasonCode": "projection_failed"},
    )
    assert _reason(state.take_event()) == "projection_failed"
    state.disconnected()
    greet(state)
    assert sent(state) == []


def test_when_the_server_stays_away_everything_ends() -> None:
    """Requests are unknown or unavailable, subscriptions get one last event."""
    state = ready()
    begun, _ = state.watch("build-1")
    [watch] = sent(state)
    answer(state, watch)
    _, waiting = state.watch("build-2")
    command = _pause(state)
    state.disconnected()
    state.exhausted()
    assert _reason(state.take_event(begun)) == "reconnect_exhausted"
    assert state.take_event() is None
    with pytest.raises(OutcomeUnknown):
        command.reply()
    with pytest.raises(Unavailable):
        waiting.reply()
    assert state.is_idle


def test_a_server_that_breaks_the_protocol_is_left() -> None:
    """No hello, two hellos, or a message that no server sends end the connection."""
    hello = envelope.encode(Hello(connection_id="connection-1", package_version=VERSION))
    reply = envelope.encode(Response(request_id="request-1", outcome=Outcome.ACCEPTED))
    for data, code in (
        (reply, "helloMissing"),
        (hello + hello, "helloTwice"),
        (hello + b"{}\n", "wrongSchema"),
        (b"HTTP/1.1 400 Bad Request\n", "notJson"),
    ):
        state = new_state()
        state.connected()
        with pytest.raises(ProtocolViolation) as violation:
            state.receive(data)
        assert violation.value.reason_code == code


def test_half_a_frame_is_forgotten_with_its_connection() -> None:
    """A reply that was cut does not run into the next connection's bytes."""
    state = ready()
    pending = _pause(state)
    [request] = sent(state)
    response = Response(request_id=request.request_id, outcome=Outcome.ACCEPTED)
    state.receive(envelope.encode(response)[:20])
    state.disconnected()
    greet(state)
    [again] = sent(state)
    answer(state, again)
    assert pending.reply() == Reply(Outcome.ACCEPTED)


def _patch(state: ClientState, subscription_id: str, revision: int, text: str = "") -> None:
    """Send a patch that nobody reads here."""
    tell(
        state,
        subscription_id,
        revision,
        event=EventKind.RUN_PATCH,
        payload={"toRevision": revision, "text": text},
    )


def test_patches_are_taken_one_by_one() -> None:
    """A patch replaces nothing; a snapshot replaces what nobody took, and loss does too."""
    state = ready()
    first, _ = state.watch("build-1")
    second, _ = state.watch("build-1")
    watches = sent(state)
    for watch in watches:
        answer(state, watch)
    name = first.subscription_id
    for revision in (1, 2):
        _patch(state, name, revision)
    tell(state, second.subscription_id, 9)
    tell(state, name, 3)
    for revision in (4, 5):
        _patch(state, name, revision)
    events = [state.take_event() for _ in range(5)]
    assert [event and event.revision for event in events] == [3, 9, 4, 5, None]
    assert first.revision == 5
    _patch(state, name, 6)
    state.disconnected()
    assert _reason(state.take_event(first)) == "connection_lost"
    assert state.take_event(first) is None
    greet(state)
    restored = sent(state)[0]
    assert restored.payload == {"subscriptionId": name, "revision": 5}


def test_patches_that_nobody_takes_become_a_snapshot() -> None:
    """Over a MiB they are dropped and the run is watched anew; patches on the way are no use."""
    state = ready()
    subscription, _ = state.watch("build-1", revision=3)
    [watch] = sent(state)
    answer(state, watch)
    name = subscription.subscription_id
    text = "x" * (CLIENT_BACKLOG_BYTES_MAX // 4)
    for revision in (4, 5, 6):
        _patch(state, name, revision, text)
    taken = state.take_event(subscription)
    assert taken is not None
    _patch(state, name, 7, text)
    assert sent(state) == []
    _patch(state, name, 8, text)
    [again] = sent(state)
    assert again.operation is Operation.VIEW_RUN_WATCH
    assert again.payload == {"subscriptionId": name}
    assert state.take_event() is None
    _patch(state, name, 9)
    assert state.take_event() is None
    answer(state, again)
    tell(state, name, 9)
    _patch(state, name, 10)
    events = [state.take_event(), state.take_event()]
    assert [event and event.revision for event in events] == [9, 10]


def test_a_restart_that_was_not_answered_is_restored_as_one() -> None:
    """A snapshot that is needed is asked for on the next connection too, once."""
    state = ready()
    subscription, first = state.watch("build-1", revision=3)
    state.restart(subscription)
    sent(state)
    state.disconnected()
    state.restart(subscription)
    assert sent(state) == []
    greet(state)
    [again] = sent(state)
    assert again.payload == {"subscriptionId": subscription.subscription_id}
    answer(state, again)
    assert first.reply() is not None
    state.unwatch(subscription)
    sent(state)
    state.restart(subscription)
    assert sent(state) == []
