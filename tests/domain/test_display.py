"""What people are told about a run, row by row and over every combination of facts."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from pi_workflows.base.limits import LIST_REASON_CHARS_MAX
from pi_workflows.domain.display import (
    PHRASES,
    TABLE,
    Display,
    Facts,
    RequestKind,
    Why,
    display,
)
from pi_workflows.domain.rows import QueueStatus, RunStatus

RUNNING = Facts("running", "running")
QUEUED = Facts("queued", "queued")
PARKED = Facts("running", "parked")
WAITING = Facts("waiting", "parked", request_kind="checkpoint")
COMPLETED = Facts("completed", "done")
FAILED = Facts("failed", "failed", error_code="nodeFailed", error_message="it did not work")

_STATUSES: tuple[RunStatus, ...] = (
    "queued",
    "running",
    "waiting",
    "completed",
    "failed",
    "timed_out",
    "cancelled",
)
_QUEUES: tuple[QueueStatus, ...] = (
    "queued",
    "starting",
    "running",
    "parked",
    "done",
    "failed",
    "cancelled",
)


def shown(facts: Facts) -> tuple[object, ...]:
    """Return what most tests look at."""
    found = display(facts)
    return found.status, found.activity, found.reason, " ".join(found.controls)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        # 1: the run ended; what is left to do comes before the error.
        (COMPLETED, ("completed", None, None, "")),
        (FAILED, ("failed", None, "it did not work", "")),
        (replace(FAILED, status="timed_out"), ("timed_out", None, "it did not work", "")),
        (Facts("cancelled", "cancelled"), ("cancelled", None, None, "")),
        (
            replace(FAILED, has_ambiguous_effect=True),
            ("failed", None, Why.EFFECT_UNRESOLVED, "review"),
        ),
        (
            replace(FAILED, is_turn_open=True),
            ("failed", "origin_turn", Why.MODEL_REVIEWS, "cancel"),
        ),
        (
            Facts("cancelled", "cancelled", is_turn_open=True),
            ("cancelled", "origin_turn", Why.MODEL_REVIEWS, ""),
        ),
        # 2: an ambiguous effect offers its review and nothing else, paused or not.
        (
            replace(PARKED, has_ambiguous_effect=True, is_paused=True),
            ("ambiguous", None, Why.EFFECT_AMBIGUOUS, "review"),
        ),
        # 3: the flag, also while a runner finishes a manual effect.
        (
            replace(PARKED, is_paused=True, request_kind="checkpoint"),
            ("paused", None, Why.PAUSED, "resume cancel"),
        ),
        (
            replace(RUNNING, is_paused=True, is_runner_live=True),
            ("paused", "supervised_runner", Why.PAUSED, "resume cancel"),
        ),
        # 4: somebody works on it.
        (
            replace(RUNNING, is_runner_live=True),
            ("running", "supervised_runner", Why.RUNNER_WORKS, "pause cancel"),
        ),
        (
            replace(WAITING, request_kind="agent", is_turn_open=True),
            ("running", "origin_turn", Why.TURN_WORKS, "pause cancel update submit"),
        ),
        # 5: an accepted answer waits for a runner; there is nothing to resume.
        (
            Facts("waiting", "queued", is_answer_accepted=True),
            ("queued", None, Why.ANSWER_ACCEPTED, "cancel"),
        ),
        (
            Facts("waiting", "parked", is_answer_accepted=True),
            ("queued", None, Why.ANSWER_ACCEPTED, "cancel"),
        ),
        # 6: by the kind of the request.
        (WAITING, ("waiting", None, Why.CHECKPOINT, "pause cancel answer")),
        (
            replace(WAITING, request_kind="decision"),
            ("waiting", None, Why.DECISION, "pause cancel human-answer"),
        ),
        (
            replace(WAITING, request_kind="agent"),
            ("waiting", None, Why.DELIVERY, "pause cancel update submit"),
        ),
        (
            replace(WAITING, request_kind="agent", is_request_delivered=True),
            ("waiting", None, Why.AGENT, "pause cancel update submit"),
        ),
        (
            replace(WAITING, request_kind="assistant", is_request_delivered=True),
            ("waiting", None, Why.AGENT, "pause cancel"),
        ),
        (Facts("waiting", "parked"), ("waiting", None, Why.INPUT, "pause cancel")),
        # 7: in the queue, or parked.
        (QUEUED, ("queued", None, Why.QUEUED, "cancel")),
        (PARKED, ("queued", None, Why.READY, "resume cancel")),
        (
            replace(PARKED, error_code="importError", error_message="no module named x"),
            ("queued", None, "no module named x", "resume cancel"),
        ),
        # 8: only the queue knows the end.
        (Facts("running", "done"), ("completed", None, None, "")),
        (replace(FAILED, status="running"), ("failed", None, "it did not work", "")),
        (Facts("running", "cancelled"), ("cancelled", None, None, "")),
        # 9: a runner was there and is not.
        (RUNNING, ("queued", None, Why.LOST, "cancel")),
        (Facts("queued", "starting"), ("queued", None, Why.LOST, "cancel")),
    ],
)
def test_the_first_row_that_applies_decides(facts: Facts, expected: tuple[object, ...]) -> None:
    """Each row gives its status, reason and controls, and yields to the rows above it."""
    assert shown(facts) == expected


def test_the_table_is_whole() -> None:
    """The rows are numbered from 1 to 9, and the last one applies to everything."""
    assert [row.number for row in TABLE] == list(range(1, 10))


@pytest.mark.parametrize("code", [*PHRASES, "nodeFailed"])
def test_a_list_gets_a_phrase_where_a_view_gets_the_message(code: str) -> None:
    """Without the stored message the reason is a phrase by code, one that every code has."""
    with_body = display(replace(PARKED, error_code=code, error_message="secret\nbody"))
    without = display(replace(PARKED, error_code=code))
    assert with_body.reason == "secret\nbody"
    assert without.reason == without.phrase == with_body.phrase
    assert without.phrase == PHRASES.get(code, Why.STORED)


def test_what_stopped_by_itself_is_marked() -> None:
    """A lost runner and an error that parked the run count as interruptions, nothing else."""
    assert display(RUNNING).is_possibly_interrupted
    assert display(replace(PARKED, error_code="runnerNoProgress")).is_possibly_interrupted
    for facts in (PARKED, QUEUED, WAITING, COMPLETED, FAILED, replace(PARKED, is_paused=True)):
        assert not display(facts).is_possibly_interrupted
    cancelled = Facts("cancelled", "parked", error_code="importError")
    assert not display(cancelled).is_possibly_interrupted


def every() -> list[tuple[Facts, Display]]:
    """Return every combination of facts with what is told about it."""
    flags = (False, True)
    kinds: tuple[RequestKind | None, ...] = (
        None,
        "agent",
        "assistant",
        "checkpoint",
        "decision",
    )
    combinations = product(
        _STATUSES, _QUEUES, flags, flags, flags, flags, kinds, flags, flags, (None, "x")
    )
    return [(facts, display(facts)) for facts in (Facts(*values) for values in combinations)]


@pytest.mark.slow
def test_every_combination_keeps_the_rules() -> None:
    """No combination of facts breaks a rule that holds for all of them."""
    for facts, told in every():
        assert told.phrase is None or len(told.phrase) <= LIST_REASON_CHARS_MAX
        # Exactly `str`: a document is encoded fast only without subclasses.
        assert type(told.phrase) in {str, type(None)}
        assert told.is_live == (told.status in {"running", "waiting"})
        assert told.status != "paused" or facts.is_paused
        assert ("resume" in told.controls) <= (told.status in {"paused", "queued"})
        assert ("review" in told.controls) == facts.has_ambiguous_effect
        assert (told.status == "ambiguous") <= (told.controls == ("review",))
        assert told.activity == (
            "supervised_runner"
            if facts.is_runner_live
            else "origin_turn"
            if facts.is_turn_open
            else None
        )
        if facts.is_ended:
            assert told.status == facts.status
            assert set(told.controls) <= {"cancel", "review"}
