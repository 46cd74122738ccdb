"""Where in the trace of a run a step settled.

No index leads from a step to its event, but steps settle in their order: the place is found by
halving the trace, so that it costs some lookups more when a run is a thousand times as long. The
order of wall times would not do, as clocks are set back.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, NamedTuple

from pi_workflows.base.sql import Read, load
from pi_workflows.domain.attempt.events import AttemptSettled, UpdateRecorded
from pi_workflows.domain.events import decode
from pi_workflows.views.facts import RunFacts

SQL: Final = load(__package__, "settlement.sql")

_NO_STEP: Final = -1


class _Told(NamedTuple):
    event_type: str
    payload: bytes


class _Place(NamedTuple):
    seq: int


def settled_seq(read: Read, facts: RunFacts, step_index: int) -> int:
    """Return the number of the event with which a step of a run settled.

    Args:
        read: One consistent read.
        facts: The run.
        step_index: One of its steps.
    """
    places = range(1, facts.run_revision + 1)
    found = bisect_left(
        places, step_index, key=lambda seq: _newest_step(read, facts.resource_id, seq)
    )
    return places[found]


def _newest_step(read: Read, resource_id: str, seq: int) -> int:
    """Return the newest step that had settled at a place in the trace, -1 before the first."""
    while True:
        told = read.one(_Told, SQL["told_up_to"], resource_id=resource_id, seq=seq)
        if told is None:
            return _NO_STEP
        fact = decode(told.event_type, told.payload)
        if isinstance(fact, AttemptSettled):
            return fact.step_index
        assert isinstance(fact, UpdateRecorded), told.event_type
        # While an attempt published, nothing settled: all that it said is passed over at once.
        first = read.one(_Place, SQL["first_update"], attempt_id=fact.update.attempt_id)
        assert first is not None, "an update without a row"
        seq = first.seq - 1
