"""The client that waits, against a scripted server on a real socket."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Generator
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
from pi_workflows.base.limits import CLIENT_RESEND_MS, CLIENT_START_MS
from pi_workflows.client.blocking import Client
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.operations import Operation
from tests.client.peer import (
    VERSION,
    Connection,
    Listener,
    hello,
    line,
    response,
    serving,
    snapshot,
)

# Eleven delays between twelve attempts, each at its upper bound.
_EXHAUSTED_MS = 250 + 500 + 1_000 + 2_000 + 4_000 + 8_000 + 5 * 10_000


class _Clock:
    """A clock that stands still until somebody sleeps."""

    def __init__(self) -> None:
        self.ms = 1_000

    def now_ms(self) -> int:
        """Return the time in milliseconds."""
        return self.ms

    def monotonic_ns(self) -> int:
        """Return the time in nanoseconds."""
        return self.ms * 1_000_000

    def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        self.ms += round(seconds * 1_000)


@pytest.fixture
def path() -> Generator[Path]:
    """Return where the server listens: a short path, as a socket needs."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory) / "host.sock"


@pytest.fixture
def clock() -> _Clock:
    """Return the clock of the client."""
    return _Clock()


def _client(path: Path, clock: _Clock, **options: Any) -> Client:
    """Return a client whose waiting costs no time."""
    endpoint = Endpoint(str(path), VERSION, client_id="client-1", random=lambda: 1.0, **options)
    return Client(endpoint, clock=clock, sleep=clock.sleep)


def _pause(client: Client) -> Outcome:
    """Ask to pause a run and return the outcome."""
    return client.request(Operation.RUN_PAUSE, {}, run_id="build-1").outcome


def _reason(event: Event | None) -> object:
    """Return why a subscription is unavailable."""
    assert event is not None
    assert event.event is EventKind.UNAVAILABLE
    assert isinstance(event.payload, dict)
    return event.payload["reasonCode"]


def test_a_request_gets_its_reply(path: Path, clock: _Clock) -> None:
    """A request is one round trip, with everything that the caller gave."""
    seen: list[dict[str, Any]] = []

    def script(listener: Listener) -> None:
        connection = listener.accept()
        seen.append(connection.request())
        connection.send(response(seen[0], revision=8, receipt={"runId": "build-1"}))
        assert connection.until_closed() == b""
        connection.close()

    with serving(path, script), _client(path, clock) as client:
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


def test_a_lost_reply_is_adopted(path: Path, clock: _Clock) -> None:
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

    with serving(path, script), _client(path, clock) as client:
        assert _pause(client) is Outcome.ADOPTED
    assert len({request.pop("requestId") for request in seen}) == 3
    assert seen[0] == seen[1] == seen[2]


def test_a_reply_to_an_earlier_request_is_ignored(path: Path, clock: _Clock) -> None:
    """A server that answers the abandoned request ID first does not confuse the client."""

    def script(listener: Listener) -> None:
        first_connection = listener.accept()
        first = first_connection.request()
        first_connection.close()
        connection = listener.accept()
        connection.send(response(first, "rejected") + response(connection.request()))
        connection.until_closed()
        connection.close()

    with serving(path, script), _client(path, clock) as client:
        assert _pause(client) is Outcome.ACCEPTED


def test_the_outcome_is_unknown_after_thirty_seconds(path: Path, clock: _Clock) -> None:
    """A command whose reply was lost, and no server since, is unknown after 30 s of attempts."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        connection.request()
        listener.close()
        connection.close()

    with serving(path, script), _client(path, clock) as client:
        began_ms = clock.ms
        with pytest.raises(OutcomeUnknown) as unknown:
            client.request(Operation.RUN_PAUSE, {}, run_id="build-1", key="key-9")
    assert clock.ms - began_ms == CLIENT_RESEND_MS
    assert "key-9" in (unknown.value.hint or "")
    assert unknown.value.exit_code == 5


def test_a_read_is_never_unknown(path: Path, clock: _Clock) -> None:
    """A read that was not answered changed nothing, so the server is just unavailable."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        connection.request()
        listener.close()
        connection.close()

    with serving(path, script), _client(path, clock) as client:
        with pytest.raises(Unavailable) as unavailable:
            client.request(Operation.RUN_LIST, {})
        assert unavailable.value.reason_code == "serverUnreachable"


def _answer_once_and_leave(listener: Listener) -> None:
    """Serve one request, then end the server."""
    connection = listener.accept()
    connection.send(response(connection.request()))
    listener.close()
    connection.close()


def test_a_request_long_after_the_loss_has_its_own_thirty_seconds(
    path: Path, clock: _Clock
) -> None:
    """The time for resends begins with the request, not with a connection lost long before."""
    with serving(path, _answer_once_and_leave), _client(path, clock) as client:
        assert _pause(client) is Outcome.ACCEPTED
        assert client.next_event(timeout_ms=1_000) is None
        clock.ms += 10 * CLIENT_RESEND_MS
        server = Listener(path)
        server.serve()
        assert _pause(client) is Outcome.ACCEPTED
    server.close()


def test_a_slow_answer_is_waited_for(path: Path, clock: _Clock) -> None:
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

    with serving(path, slow), _client(path, clock) as client:
        client.watch("build-1")
        assert _pause(client) is Outcome.ACCEPTED


def test_a_subscription_survives_a_lost_connection(path: Path, clock: _Clock) -> None:
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

    with serving(path, script), _client(path, clock) as client:
        subscription = client.watch("build-1")
        first, lost, second = (client.next_event(subscription) for _ in range(3))
    assert first is not None
    assert second is not None
    assert (first.revision, second.revision) == (4, 6)
    assert _reason(lost) == "connection_lost"
    name = subscription.subscription_id
    assert watches == [{"subscriptionId": name}, {"subscriptionId": name, "revision": 4}]


def test_news_of_other_subscriptions_is_kept(path: Path, clock: _Clock) -> None:
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

    with serving(path, script), _client(path, clock) as client:
        first, second = client.watch("build-1"), client.watch("build-2")
        event = client.next_event(second)
        assert event is not None
        assert event.revision == 2
        assert _pause(client) is Outcome.ACCEPTED
        event = client.next_event()
        assert event is not None
        assert (event.subscription_id, event.revision) == (first.subscription_id, 3)
        assert client.next_event(timeout_ms=0) is None


def test_an_unknown_run_cannot_be_watched(path: Path, clock: _Clock) -> None:
    """The refusal of a subscription is raised, and the client goes on."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        connection.send(response(connection.request(), "notFound", receipt={"code": "runMissing"}))
        connection.send(response(connection.request()))
        connection.until_closed()
        connection.close()

    with serving(path, script), _client(path, clock) as client:
        with pytest.raises(NotFound) as missing:
            client.watch("build-1")
        assert missing.value.reason_code == "runMissing"
        assert _pause(client) is Outcome.ACCEPTED


def test_an_end_of_a_subscription_is_told(path: Path, clock: _Clock) -> None:
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

    with serving(path, script), _client(path, clock) as client:
        client.unwatch(client.watch(None))
    assert seen == ["view.runs.watch", "view.run.unwatch"]


def test_another_version_is_left_alone(path: Path, clock: _Clock) -> None:
    """Only status and stop go to a server of another version; the error asks for matching ones."""
    seen: list[str] = []

    def script(listener: Listener) -> None:
        connection = listener.accept(greeting=hello("9.9.9"))
        for _ in range(2):
            request = connection.request()
            seen.append(request["operation"])
            connection.send(response(request))
        assert connection.until_closed() == b""
        connection.close()

    with serving(path, script), _client(path, clock) as client:
        with pytest.raises(Unavailable) as mismatch:
            _pause(client)
        assert mismatch.value.reason_code == "versionMismatch"
        client.request(Operation.SERVER_STATUS, {}).done()
        client.request(Operation.SERVER_STOP, {}).done()
    assert seen == ["server.status", "server.stop"]


def test_a_missing_server_is_not_started_by_itself(path: Path, clock: _Clock) -> None:
    """Without a starter a missing socket, and one that nobody serves, are `serverNotRunning`."""
    with pytest.raises(Unavailable) as missing:
        _client(path, clock).connect()
    assert missing.value.reason_code == "serverNotRunning"
    abandoned = socket.socket(socket.AF_UNIX)
    abandoned.bind(str(path))
    abandoned.close()
    with pytest.raises(Unavailable) as missing:
        _client(path, clock).connect()
    assert missing.value.reason_code == "serverNotRunning"


def test_a_missing_server_is_started_once(path: Path, clock: _Clock) -> None:
    """The starter is called once, then the client looks every 50 ms until the server listens."""
    started: list[Listener] = []
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        clock.sleep(seconds)
        if len(looks) == 3:
            started.append(Listener(path))
            started[0].serve()

    calls: list[None] = []
    endpoint = Endpoint(str(path), VERSION, starter=lambda: calls.append(None))
    client = Client(endpoint, clock=clock, sleep=sleep)
    client.connect()
    assert client.server_version == VERSION
    assert (looks, len(calls)) == ([0.05] * 3, 1)
    client.close()
    started[0].close()


def test_a_server_that_does_not_come_up_is_given_up(path: Path, clock: _Clock) -> None:
    """After ten seconds without a server that was started, the client says so."""
    client = _client(path, clock, starter=lambda: None)
    began_ms = clock.ms
    with pytest.raises(Unavailable) as failed:
        client.connect()
    assert failed.value.reason_code == "serverStartFailed"
    assert clock.ms - began_ms == CLIENT_START_MS


def test_waiting_for_a_reply_starts_the_server_again(path: Path, clock: _Clock) -> None:
    """A server that ended under a command is started by the client, which then asks again."""
    seen: list[dict[str, Any]] = []

    def first(listener: Listener) -> None:
        connection = listener.accept()
        seen.append(connection.request())
        listener.close()
        connection.close()

    started: list[Listener] = []

    def adopt(request: dict[str, Any]) -> bytes:
        seen.append(request)
        return response(request, "adopted")

    def start() -> None:
        started.append(Listener(path))
        started[0].serve(adopt)

    with serving(path, first), _client(path, clock, starter=start) as client:
        assert _pause(client) is Outcome.ADOPTED
    assert len(started) == 1
    assert seen[0]["idempotencyKey"] == seen[1]["idempotencyKey"]
    started[0].close()


def test_a_client_that_waits_for_nothing_starts_nothing(path: Path, clock: _Clock) -> None:
    """A server that left because it was idle is not called back by an idle client."""

    def script(listener: Listener) -> None:
        connection = listener.accept()
        listener.close()
        connection.close()

    calls: list[None] = []
    with (
        serving(path, script),
        _client(path, clock, starter=lambda: calls.append(None)) as client,
    ):
        assert client.next_event(timeout_ms=20_000) is None
    assert calls == []


def test_a_restored_subscription_gives_new_patience(path: Path, clock: _Clock) -> None:
    """The attempts count from the last time that everything was restored."""
    with serving(path, _answer_once_and_leave), _client(path, clock) as client:
        client.watch("build-1")
        assert _reason(client.next_event()) == "connection_lost"
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
        assert _reason(client.next_event()) == "connection_lost"
        began_ms = clock.ms
        assert _reason(client.next_event()) == "reconnect_exhausted"
        assert clock.ms - began_ms == _EXHAUSTED_MS


def test_when_the_server_stays_away_a_last_event_says_so(path: Path, clock: _Clock) -> None:
    """Twelve attempts without a server end the subscription and then the client."""
    with serving(path, _answer_once_and_leave), _client(path, clock) as client:
        client.watch("build-1")
        began_ms = clock.ms
        assert _reason(client.next_event()) == "connection_lost"
        assert _reason(client.next_event()) == "reconnect_exhausted"
        assert clock.ms - began_ms == _EXHAUSTED_MS
        for _ in range(2):
            with pytest.raises(Unavailable):
                client.next_event()
        with pytest.raises(Unavailable):
            _pause(client)


def test_waiting_ends_in_time_while_the_server_is_away(path: Path, clock: _Clock) -> None:
    """A deadline of the caller holds between attempts to reconnect too."""
    with serving(path, _answer_once_and_leave), _client(path, clock) as client:
        client.watch("build-1")
        assert _reason(client.next_event(timeout_ms=5_000)) == "connection_lost"
        began_ms = clock.ms
        assert client.next_event(timeout_ms=5_000) is None
        assert clock.ms - began_ms == 5_000


@pytest.mark.parametrize("garbage", [b"HTTP/1.1 400 Bad Request\r\n", b"{}\n"])
def test_something_else_that_listens_is_not_spoken_to(
    path: Path, clock: _Clock, garbage: bytes
) -> None:
    """A peer that is no server of ours gets nothing from us."""
    sent: list[bytes] = []

    def script(listener: Listener) -> None:
        connection = listener.accept(greeting=garbage)
        sent.append(connection.until_closed())
        connection.close()

    with serving(path, script), pytest.raises(ProtocolViolation):
        _client(path, clock).connect()
    assert sent == [b""]


def test_a_server_that_breaks_the_protocol_is_left(path: Path, clock: _Clock) -> None:
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

    with serving(path, script), _client(path, clock) as client:
        with pytest.raises(ProtocolViolation):
            _pause(client)
        assert _pause(client) is Outcome.ACCEPTED


def test_a_bad_request_is_refused_without_a_connection(path: Path, clock: _Clock) -> None:
    """What the server would refuse is refused before anything is sent, in the same words."""
    client = _client(path, clock)
    with pytest.raises(PayloadInvalid) as refused:
        client.request(Operation.RUN_LIST, {"limit": 0})
    assert refused.value.field == "limit"


@pytest.mark.slow
def test_a_server_that_says_nothing_is_unreachable(path: Path, clock: _Clock) -> None:
    """The hello has two seconds; they are real ones, as the socket measures them."""

    def script(listener: Listener) -> None:
        connection = listener.accept(greeting=b"")
        assert connection.until_closed() == b""
        connection.close()

    with serving(path, script), pytest.raises(Unavailable) as silent:
        _client(path, clock).connect()
    assert silent.value.reason_code == "serverUnreachable"
