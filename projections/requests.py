"""`interactive_requests` and `interactive_submissions`."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.sql import Projection, load
from pi_workflows.domain.attempt.events import AttemptSettled
from pi_workflows.domain.fact import Stored
from pi_workflows.domain.request.events import RequestSubmitted
from pi_workflows.domain.rows import RequestChange, SubmissionChange
from pi_workflows.domain.run.events import InteractionEvent, RunEnded, RunWaiting

SQL: Final = load(__package__, "requests.sql")


def asked(event: Stored, fact: RunWaiting, db: Projection) -> None:
    """Insert the question that the run asks."""
    db.write(SQL["insert_request"], **fact.request.columns())


def submitted(event: Stored, fact: RequestSubmitted, db: Projection) -> None:
    """Insert an answer; an accepted one settles its question."""
    db.write(SQL["insert_submission"], **fact.submission.columns())
    if fact.request is not None:
        _change(event, fact.request, db)


def changed(event: Stored, fact: InteractionEvent, db: Projection) -> None:
    """Set what an event changed in the run's question and in its answers."""
    _judge(fact.submissions, db)
    if fact.request is not None:
        _change(event, fact.request, db)


def consumed(event: Stored, fact: AttemptSettled, db: Projection) -> None:
    """Mark the answer that an attempt ended with."""
    if fact.request is not None:
        _change(event, fact.request, db)


def closed(event: Stored, fact: RunEnded, db: Projection) -> None:
    """Cancel the question that was open when the run ended, and refuse what was being judged."""
    _judge(fact.submissions, db)
    for request in fact.requests:
        _change(event, request, db)


def _change(event: Stored, change: RequestChange, db: Projection) -> None:
    """Set the changed columns of a question."""
    db.write(SQL["change_request"], at_ms=event.at_ms, **change.columns())


def _judge(submissions: tuple[SubmissionChange, ...], db: Projection) -> None:
    """Set what became of answers."""
    for submission in submissions:
        db.write(SQL["change_submission"], **submission.columns())
