"""Where a client connects, and how long it waits between connections."""

from __future__ import annotations

import pytest

from pi_workflows.base.errors import LimitExceeded
from pi_workflows.base.limits import SOCKET_PATH_BYTES_MAX
from pi_workflows.client.endpoint import Backoff, Endpoint

_DOUBLING_MS = [250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000, 10_000, 10_000, 10_000]


@pytest.mark.parametrize(("chance", "share"), [(0.0, 0.5), (0.5, 0.75), (1.0, 1.0)])
def test_delays_double_and_are_random_in_their_upper_half(chance: float, share: float) -> None:
    """Twelve connections have eleven delays, from 250 ms to 10 s, each between half and whole."""
    backoff = Backoff(lambda: chance)
    delays = [backoff.next_ms() for _ in range(13)]
    assert delays[:11] == [int(bound * share) for bound in _DOUBLING_MS]
    assert delays[11:] == [None, None]


def test_a_restored_connection_forgets_the_failures() -> None:
    """After success the delays begin again."""
    backoff = Backoff(lambda: 1.0)
    assert [backoff.next_ms() for _ in range(4)] == _DOUBLING_MS[:4]
    backoff.reset()
    assert backoff.next_ms() == _DOUBLING_MS[0]


def test_a_socket_path_is_bounded() -> None:
    """A path of 107 bytes is the longest that the system takes; bytes count, not characters."""
    Endpoint("/" + "x" * (SOCKET_PATH_BYTES_MAX - 1), "1.2.3")
    for path in ("/" + "x" * SOCKET_PATH_BYTES_MAX, "/" + "é" * 60):
        with pytest.raises(LimitExceeded) as refused:
            Endpoint(path, "1.2.3")
        assert refused.value.reason_code == "socketPathTooLong"


def test_every_client_has_an_identity_of_its_own() -> None:
    """Two clients of one process are two clients."""
    assert Endpoint("/a", "1").client_id != Endpoint("/a", "1").client_id
