"""How the work of one runner ended, before anything about it is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from pi_workflows.domain.failure import Failure


@dataclass(frozen=True, slots=True)
class Left:
    """The run's claim ended with a committed event: there is nothing to add."""


@dataclass(frozen=True, slots=True)
class Lost:
    """The runner is gone without having said so.

    Attributes:
        detail: What is known about it, one line without anything that its code wrote.
        is_counted: Whether the loss counts against the run.
    """

    detail: str
    is_counted: bool = True


@dataclass(frozen=True, slots=True)
class Forfeited:
    """The run's claim does not hold any more, though no event of the run ended it: it expired."""


@dataclass(frozen=True, slots=True)
class Unlaunched:
    """Nothing ran: the source or the definition is not the launched one, or does not load."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Faulty:
    """The runner proposed what may not be: the run fails with this."""

    failure: Failure


@dataclass(frozen=True, slots=True)
class Stuck:
    """A node's budget and the time to say so have passed.

    Attributes:
        attempt_id: The attempt that is still open.
        elapsed_ns: Its active time.
        timeout_ms: Its budget.
    """

    attempt_id: str
    elapsed_ns: int
    timeout_ms: int


Ending: TypeAlias = Left | Lost | Forfeited | Unlaunched | Faulty | Stuck
