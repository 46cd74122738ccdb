"""Where the server is, who asks it, and how it is started when it is not there."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from pi_workflows.base import ids
from pi_workflows.base.errors import LimitExceeded, Unavailable
from pi_workflows.base.limits import (
    CLIENT_RECONNECT_MAX_MS,
    CLIENT_RECONNECT_MIN_MS,
    CLIENT_RECONNECTS_MAX,
    CLIENT_START_MS,
    SOCKET_PATH_BYTES_MAX,
)
from pi_workflows.protocol.connection import ClientState


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a client needs to know before it connects.

    Attributes:
        socket_path: The server's socket, at most 107 bytes.
        package_version: The client's own; a server of another one is asked for its status or its
            end only.
        client_id: The same for every request of the client.
        starter: Starts a server in the background and returns; None: a missing server is not
            started.
        new_id: Makes an identity from a prefix that no one else has.
        random: Returns a number from 0 up to 1, for the delays between connections.
    """

    socket_path: str
    package_version: str
    client_id: str = field(default_factory=lambda: ids.random_id("client"))
    starter: Callable[[], None] | None = None
    new_id: Callable[[str], str] = ids.random_id
    random: Callable[[], float] = random.random

    def __post_init__(self) -> None:
        """Refuse a socket path that the system would cut or refuse with words of its own."""
        length = len(os.fsencode(self.socket_path))
        if length > SOCKET_PATH_BYTES_MAX:
            raise LimitExceeded(
                f"the socket path has {length} bytes, more than {SOCKET_PATH_BYTES_MAX}",
                code="socketPathTooLong",
                hint="Set PI_WORKFLOWS_STATE_DIR to a shorter directory",
            )

    def new_state(self) -> ClientState:
        """Return the state of a new client."""
        return ClientState(
            client_id=self.client_id, package_version=self.package_version, new_id=self.new_id
        )


class Backoff:
    """The delays between connections.

    Doubling from 250 ms to 10 s, at random in the upper half, twelve times.

    Args:
        random: Returns a number from 0 up to 1.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        """Begin with the shortest delay."""
        self._random = random
        self._failures = 0

    def next_ms(self) -> int | None:
        """Count a failure.

        Returns the delay before the next connection, None after the last one.
        """
        self._failures += 1
        if self._failures >= CLIENT_RECONNECTS_MAX:
            return None
        bound_ms = min(CLIENT_RECONNECT_MIN_MS << (self._failures - 1), CLIENT_RECONNECT_MAX_MS)
        return bound_ms // 2 + int(self._random() * (bound_ms - bound_ms // 2))

    def reset(self) -> None:
        """Forget the failures: the connection is back with every subscription."""
        self._failures = 0


class Fruitless(Backoff):
    """The delays after connections that were lost before everything asked on them was answered.

    The first is followed by the next at once: servers come and go. A server that is there and drops
    whoever asks it the same again and again is asked as often as one that stays away.
    """

    def next_ms(self) -> int | None:
        """Count a lost connection, as `Backoff.next_ms` counts a failure."""
        if not self._failures:
            self._failures = 1
            return 0
        return super().next_ms()


def not_running() -> Unavailable:
    """Return the error of a missing server that may not be started."""
    return Unavailable(
        "No server is running.",
        code="serverNotRunning",
        hint="Start one: pi-workflows server start",
    )


def not_started() -> Unavailable:
    """Return the error of a server that was started and did not answer."""
    return Unavailable(
        f"The server was started and did not answer within {CLIENT_START_MS // 1_000} seconds.",
        code="serverStartFailed",
        hint="Look into host/logs/server.log in the state directory",
    )


def unreachable() -> Unavailable:
    """Return the error of a server that is there and does not answer, or went away for good."""
    return Unavailable("The server cannot be reached.", code="serverUnreachable")
