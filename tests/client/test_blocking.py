"""The client that waits, against a scripted server on a real socket."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pi_workflows.base.errors import (
    NotFound,
    Outcome,
    OutcomeUnknown,
    PayloadInvalid,
    ProtocolViolation,
    Unavailable,
)
from pi_workflows.base.limits import CLIENT_RESEND_MS
from pi_workflows.protocol.operations import Operation
from tests.client.peer import (
    VERSION,
    Connection,
    Listener,
    line,
    response,
    serving,
    snapshot,
)
from tests.client.stage import StillClock, new_client, pause, reason

# Eleven delays between twelve attempts, each at its upper bound.
_EXHAUSTED_MS = 250 + 500 + 1_000 + 2_000 + 4_000 + 8_000 + 5 * 10_000


def test_a_request_gets_its_reply(path: Path, clock: StillClock) -> None:
    """A request is one round trip, with everything that the caller gave."""
    seen: list[dict[str, Any]] = []

    def script(listener: Listener) -> None:
        connection = listener.accept()
        seen.append(connection.request())
        connection.send(response(seen[0], revision=8, receipt={"runId": "build-1"}))
        assert connection.until_closed() == b""
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        assert client.server_version == VERSION
        reply = client.request(
            Operation.RUN_CANCEL, {}, run_id="build-1", expected_revision=7, key="key-1"
        )
    assert reply.done().revision == 8
    assert reply.receipt == {"runId": "build-1"}
    assert seen[0].pop("requestId")
    assert seen[0] == {
        "clientId": "client-1",
        "operation": "run.cancel",
        "idempotencyKey": "key-1",
        "payload": {},
        "runId": "build-1",
        "expectedRevision": 7,
    }


def test_a_lost_reply_is_adopted(path: Path, clock: StillClock) -> None:
    """When the reply is lost the same request goes to the next connection and is adopted there."""
    seen: list[dict[str, Any]] = []

    def script(listener: Listener) -> None:
        for outcome in (None, None, "adopted"):
            connection = listener.accept()
            seen.append(connection.request())
            if outcome is not None:
                connection.send(response(seen[-1], outcome))
                connection.until_closed()
            connection.close()

    with serving(path, script), new_client(path, clock) as client:
        assert pause(client) is Outcome.ADOPTED
    assert len({request.pop("requestId") for request in seen}) == 3
    assert seen[0] == seen[1] == seen[2]


def test_a_reply_to_an_earlier_request_is_ignored(path: Path, clock: StillClock) -> None:
    """A server that answers the abandoned request ID first does not confuse the client."""

    def script(listener: Listener) -> None:
        first_connection = listener.accept()
        first = first_connection.request()
        first_connection.close()
        connection = listener.accept()
        connection.send(response(first, "rejected") + response(connection.request()))
        connection.until_closed()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        assert pause(client) is Outcome.ACCEPTED


def test_the_outcome_is_unknown_after_thirty_seconds(path: Path, clock: StillClock) -> None:
    """A command whose reply was lost, and no server since, is unknown after 30 s of attempts."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        connection.request()
        listener.close()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        began_ms = clock.ms
        with pytest.raises(OutcomeUnknown) as unknown:
            client.request(Operation.RUN_PAUSE, {}, run_id="build-1", key="key-9")
    assert clock.ms - began_ms == CLIENT_RESEND_MS
    assert "key-9" in (unknown.value.hint or "")
    assert unknown.value.exit_code == 5


def test_a_read_is_never_unknown(path: Path, clock: StillClock) -> None:
    """A read that was not answered changed nothing, so the server is just unavailable."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        connection.request()
        listener.close()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        with pytest.raises(Unavailable) as unavailable:
            client.request(Operation.RUN_LIST, {})
        assert unavailable.value.reason_code == "serverUnreachable"


def test_a_server_that_drops_every_request_is_given_up(path: Path, clock: StillClock) -> None:
    """A request that costs each connection is sent twelve times, with growing delays."""

    def script(listener: Listener) -> None:
        for _ in range(12):
            connection = listener.accept()
            connection.request()
            connection.close()

    with serving(path, script), new_client(path, clock) as client:
        began_ms = clock.ms
        with pytest.raises(OutcomeUnknown):
            pause(client)
    # The first connection is followed by the next at once.
    assert clock.ms - began_ms == _EXHAUSTED_MS - 250


def _answer_once_and_leave(listener: Listener) -> None:
    """Serve one request, then end the server."""
    connection = listener.accept()
    connection.send(response(connection.request()))
    listener.close()
    connection.close()


def test_a_request_long_after_the_loss_has_its_own_thirty_seconds(
    path: Path, clock: StillClock
) -> None:
    """The time for resends begins with the request, not with a connection lost long before."""
    with serving(path, _answer_once_and_leave), new_client(path, clock) as client:
        assert pause(client) is Outcome.ACCEPTED
        assert client.next_event(timeout_ms=1_000) is None
        clock.ms += 10 * CLIENT_RESEND_MS
        server = Listener(path)
        server.serve()
        assert pause(client) is Outcome.ACCEPTED
    server.close()


def test_a_slow_answer_is_waited_for(path: Path, clock: StillClock) -> None:
    """While the connection lives a request has all the time it needs, also after a lost one."""

    def slow(listener: Listener) -> None:
        listener.accept().close()
        connection = listener.accept()
        watch = connection.request()
        connection.send(response(watch))
        request = connection.request()
        clock.ms += 10 * CLIENT_RESEND_MS
        connection.send(snapshot(watch["payload"]["subscriptionId"], 1))
        connection.send(response(request))
        connection.until_closed()
        connection.close()

    with serving(path, slow), new_client(path, clock) as client:
        client.watch("build-1")
        assert pause(client) is Outcome.ACCEPTED


def test_a_subscription_survives_a_lost_connection(path: Path, clock: StillClock) -> None:
    """After reconnecting the client asks for what follows the revision that it has taken."""
    watches: list[dict[str, Any]] = []

    def watched(listener: Listener) -> Connection:
        connection = listener.accept()
        request = connection.request()
        assert request["operation"] == "view.run.watch"
        watches.append(request["payload"])
        connection.send(response(request, receipt={"subscribed": True}))
        return connection

    def script(listener: Listener) -> None:
        connection = watched(listener)
        connection.send(snapshot(watches[0]["subscriptionId"], 4))
        connection.close()
        connection = watched(listener)
        connection.send(snapshot(watches[0]["subscriptionId"], 6))
        connection.until_closed()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        subscription = client.watch("build-1")
        first, lost, second = (client.next_event(subscription) for _ in range(3))
    assert first is not None
    assert second is not None
    assert (first.revision, second.revision) == (4, 6)
    assert reason(lost) == "connection_lost"
    name = subscription.subscription_id
    assert watches == [{"subscriptionId": name}, {"subscriptionId": name, "revision": 4}]


def test_news_of_other_subscriptions_is_kept(path: Path, clock: StillClock) -> None:
    """Waiting for one subscription, or for a reply, loses nothing of the others."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        names: list[str] = []
        for _ in range(2):
            request = connection.request()
            names.append(request["payload"]["subscriptionId"])
            connection.send(response(request))
        connection.send(snapshot(names[0], 1) + snapshot(names[1], 2))
        request = connection.request()
        connection.send(snapshot(names[0], 3) + response(request))
        connection.until_closed()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        first, second = client.watch("build-1"), client.watch("build-2")
        event = client.next_event(second)
        assert event is not None
        assert event.revision == 2
        assert pause(client) is Outcome.ACCEPTED
        event = client.next_event()
        assert event is not None
        assert (event.subscription_id, event.revision) == (first.subscription_id, 3)
        assert client.next_event(timeout_ms=0) is None


def test_an_unknown_run_cannot_be_watched(path: Path, clock: StillClock) -> None:
    """The refusal of a subscription is raised, and the client goes on."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        connection.send(response(connection.request(), "notFound", receipt={"code": "runMissing"}))
        connection.send(response(connection.request()))
        connection.until_closed()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        with pytest.raises(NotFound) as missing:
            client.watch("build-1")
        assert missing.value.reason_code == "runMissing"
        assert pause(client) is Outcome.ACCEPTED


def test_an_end_of_a_subscription_is_told(path: Path, clock: StillClock) -> None:
    """The server learns that nobody listens any more."""
    seen: list[str] = []

    def script(listener: Listener) -> None:
        connection = listener.accept()
        for _ in range(2):
            request = connection.request()
            seen.append(request["operation"])
            connection.send(response(request))
        connection.until_closed()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        client.unwatch(client.watch(None))
    assert seen == ["view.runs.watch", "view.run.unwatch"]


def test_a_restored_subscription_gives_new_patience(path: Path, clock: StillClock) -> None:
    """The attempts count from the last time that everything was restored."""
    with serving(path, _answer_once_and_leave), new_client(path, clock) as client:
        client.watch("build-1")
        assert reason(client.next_event()) == "connection_lost"
        assert client.next_event(timeout_ms=20_000) is None

        def restore(listener: Listener) -> None:
            connection = listener.accept()
            request = connection.request()
            connection.send(response(request) + snapshot(request["payload"]["subscriptionId"], 1))
            listener.close()
            connection.close()

        with serving(path, restore):
            event = client.next_event()
        assert event is not None
        assert event.revision == 1
        assert reason(client.next_event()) == "connection_lost"
        began_ms = clock.ms
        assert reason(client.next_event()) == "reconnect_exhausted"
        assert clock.ms - began_ms == _EXHAUSTED_MS


def test_when_the_server_stays_away_a_last_event_says_so(path: Path, clock: StillClock) -> None:
    """Twelve attempts without a server end the subscription and then the client."""
    with serving(path, _answer_once_and_leave), new_client(path, clock) as client:
        client.watch("build-1")
        began_ms = clock.ms
        assert reason(client.next_event()) == "connection_lost"
        assert reason(client.next_event()) == "reconnect_exhausted"
        assert clock.ms - began_ms == _EXHAUSTED_MS
        for _ in range(2):
            with pytest.raises(Unavailable):
                client.next_event()
        with pytest.raises(Unavailable):
            pause(client)


def test_waiting_ends_in_time_while_the_server_is_away(path: Path, clock: StillClock) -> None:
    """A deadline of the caller holds between attempts to reconnect too."""
    with serving(path, _answer_once_and_leave), new_client(path, clock) as client:
        client.watch("build-1")
        assert reason(client.next_event(timeout_ms=5_000)) == "connection_lost"
        began_ms = clock.ms
        assert client.next_event(timeout_ms=5_000) is None
        assert clock.ms - began_ms == 5_000


def test_a_server_that_breaks_the_protocol_is_left(path: Path, clock: StillClock) -> None:
    """A bad frame ends the connection and is told; the next request has a new one."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        connection.request()
        connection.send(line({"type": "response", "outcome": "accepted"}))
        connection.until_closed()
        connection.close()
        connection = listener.accept()
        connection.send(response(connection.request()))
        connection.until_closed()
        connection.close()

    with serving(path, script), new_client(path, clock) as client:
        with pytest.raises(ProtocolViolation):
            pause(client)
        assert pause(client) is Outcome.ACCEPTED


def test_a_bad_request_is_refused_without_a_connection(path: Path, clock: StillClock) -> None:
    """What the server would refuse is refused before anything is sent, in the same words."""
    client = new_client(path, clock)
    with pytest.raises(PayloadInvalid) as refused:
        client.request(Operation.RUN_LIST, {"limit": 0})
    assert refused.value.field == "limit"
