"""A rate: a burst, then a steady flow, never more."""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base.rate import Rate

SECOND_NS = 1_000_000_000


@dataclass
class Hand:
    """A clock that a test moves."""

    at_ns: int = 0

    def now_ms(self) -> int:
        """Return the wall time, which nobody here asks for."""
        raise AssertionError

    def monotonic_ns(self) -> int:
        """Return where the hand stands."""
        return self.at_ns


def taken(rate: Rate, tries: int) -> int:
    """Return how many tokens of so many tries there were."""
    return sum(rate.take() for _ in range(tries))


def test_a_burst_is_there_at_once_and_no_more() -> None:
    """A new rate gives its whole burst."""
    assert taken(Rate(Hand(), per_second=20, burst=100), 200) == 100


def test_tokens_come_back_steadily_up_to_the_burst() -> None:
    """Half a second gives half of a second's tokens; an hour gives a burst."""
    clock = Hand()
    rate = Rate(clock, per_second=20, burst=100)
    taken(rate, 100)
    clock.at_ns += SECOND_NS // 2
    assert taken(rate, 200) == 10
    clock.at_ns += 3_600 * SECOND_NS
    assert taken(rate, 200) == 100


def test_refusals_cost_nothing() -> None:
    """Asking in vain does not delay the next token."""
    clock = Hand()
    rate = Rate(clock, per_second=10, burst=1)
    assert rate.take()
    for _ in range(10):
        clock.at_ns += SECOND_NS // 100
        rate.take()
    assert taken(rate, 5) <= 1
    clock.at_ns += SECOND_NS // 10
    assert rate.take()
