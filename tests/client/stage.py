"""What tests of the waiting client share: its clock, and short forms of what they ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pi_workflows.base.errors import Outcome
from pi_workflows.client.blocking import Client
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.operations import Operation
from tests.client.peer import VERSION


class StillClock:
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


def new_client(path: Path, clock: StillClock, **options: Any) -> Client:
    """Return a client whose waiting costs no time."""
    endpoint = Endpoint(str(path), VERSION, client_id="client-1", random=lambda: 1.0, **options)
    return Client(endpoint, clock=clock, sleep=clock.sleep)


def pause(client: Client) -> Outcome:
    """Ask to pause a run and return the outcome."""
    return client.request(Operation.RUN_PAUSE, {}, run_id="build-1").outcome


def reason(event: Event | None) -> object:
    """Return why a subscription is unavailable."""
    assert event is not None
    assert event.event is EventKind.UNAVAILABLE
    assert isinstance(event.payload, dict)
    return event.payload["reasonCode"]
