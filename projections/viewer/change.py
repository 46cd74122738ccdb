"""What one command changed in a run, as far as its view is concerned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pi_workflows.base import ids
from pi_workflows.domain.attempt.events import (
    AttemptSettled,
    AttemptStarted,
    EntriesLinked,
    UpdateRecorded,
)
from pi_workflows.domain.fact import Event, Stored
from pi_workflows.domain.follow_up.events import FollowUpEnded, FollowUpQueued
from pi_workflows.domain.message.events import (
    MessageChanged,
    MessageCreated,
    MessageSent,
    TurnStarted,
    TurnStopped,
)
from pi_workflows.domain.request.events import RequestSubmitted
from pi_workflows.domain.run.events import InteractionEvent, RunEnded, RunEvent, RunWaiting
from pi_workflows.domain.session.events import SegmentEnded, SegmentOpened
from pi_workflows.domain.session.journal import Flush
from pi_workflows.domain.settings.events import RunSettingsOpened, SettingsChanged


@dataclass(frozen=True, slots=True)
class Change:
    """What a command did.

    Attributes:
        run_id: The run.
        own: The events of the run's own resource, in order, which are the newest of its trace; none
            when the command changed only an effect or a capture of the run.
        captures: The captures that were opened.
        ended: The captures that ended.
        flush: What was appended to the session journals.
        beside: What the events of other resources say.
    """

    run_id: str
    own: tuple[Stored, ...]
    captures: tuple[SegmentOpened, ...] = ()
    ended: tuple[SegmentEnded, ...] = ()
    flush: Flush | None = None
    beside: tuple[Event, ...] = ()

    @classmethod
    def of(cls, run_id: str, events: tuple[Stored, ...], flush: Flush | None = None) -> Change:
        """Return the change that one command made; events of effects come along."""
        resource_id = ids.resource_id("run", run_id)
        facts = tuple(event.fact for event in events)
        return cls(
            run_id,
            tuple(event for event in events if event.resource_id == resource_id),
            tuple(fact for fact in facts if isinstance(fact, SegmentOpened)),
            tuple(fact for fact in facts if isinstance(fact, SegmentEnded)),
            flush,
            tuple(event.fact for event in events if event.resource_id != resource_id),
        )

    @property
    def has_capture(self) -> bool:
        """Whether it concerns what was captured of a session."""
        return self.flush is not None or bool(self.captures or self.ended)

    @property
    def is_capture(self) -> bool:
        """Whether it concerns what was captured of a session alone."""
        return self.has_capture and not self.own

    @property
    def has_links(self) -> bool:
        """Whether entries of a session were found to belong to an attempt."""
        return any(isinstance(fact, EntriesLinked) for fact in self.facts)

    @property
    def facts(self) -> tuple[Event, ...]:
        """What the run's own events say."""
        return tuple(event.fact for event in self.own)

    @property
    def started(self) -> tuple[AttemptStarted, ...]:
        """The attempts that began."""
        return tuple(fact for fact in self.facts if isinstance(fact, AttemptStarted))

    @property
    def settled(self) -> tuple[AttemptSettled, ...]:
        """The attempts that became steps."""
        return tuple(fact for fact in self.facts if isinstance(fact, AttemptSettled))

    @property
    def has_progress(self) -> bool:
        """Whether a node published progress."""
        return any(isinstance(fact, UpdateRecorded) for fact in self.facts)

    @property
    def has_settings(self) -> bool:
        """Whether settings came to be or changed."""
        return any(
            isinstance(fact, RunSettingsOpened | SettingsChanged)
            for fact in (*self.facts, *self.beside)
        )

    @property
    def has_follow_ups(self) -> bool:
        """Whether a follow-up was queued, came to an end, or may have been sent."""
        return any(
            isinstance(fact, FollowUpQueued | FollowUpEnded | MessageSent) for fact in self.beside
        )

    @property
    def has_messages(self) -> bool:
        """Whether something was told to the session or came of it, or a turn began or ended."""
        return any(isinstance(fact, _MESSAGES) for fact in self.beside)

    @property
    def has_run(self) -> bool:
        """Whether columns of the run itself were set."""
        return any(isinstance(fact, RunEvent) and fact.run is not None for fact in self.facts)

    @property
    def has_queue(self) -> bool:
        """Whether the run's place in the queue was set."""
        return any(isinstance(fact, RunEvent) and fact.queue is not None for fact in self.facts)

    @property
    def has_attempts(self) -> bool:
        """Whether an attempt began, ended or was interrupted."""
        return any(map(_has_attempt, self.facts))

    @property
    def has_requests(self) -> bool:
        """Whether a question was asked, answered, taken or closed."""
        return any(map(_has_request, self.facts))

    @property
    def has_ended(self) -> bool:
        """Whether the run ended."""
        return any(isinstance(fact, RunEnded) for fact in self.facts)


_MESSAGES: Final = (MessageCreated, MessageChanged, TurnStarted, TurnStopped)


def _has_attempt(fact: Event) -> bool:
    """Whether an event changes an attempt."""
    match fact:
        case AttemptStarted() | AttemptSettled():
            return True
        case RunEvent():
            return fact.attempt is not None
        case _:
            return False


def _has_request(fact: Event) -> bool:
    """Whether an event changes a question."""
    match fact:
        case RunWaiting():
            return True
        case AttemptSettled() | RequestSubmitted() | InteractionEvent():
            return fact.request is not None
        case RunEnded():
            return bool(fact.requests)
        case _:
            return False
