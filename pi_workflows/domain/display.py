"""What people are told about a run: one pure table from facts to a status, a reason and controls.

The client protocol, "Display decision table". The first row that applies decides. Nothing here is
stored: the server asks at send time, an audit asks with no process alive.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from pi_workflows.base.limits import LIST_REASON_CHARS_MAX
from pi_workflows.base.vocabulary import DisplayStatus
from pi_workflows.domain.rows import QueueStatus, RunStatus

Activity: TypeAlias = Literal["supervised_runner", "origin_turn"]
RequestKind: TypeAlias = Literal["agent", "assistant", "checkpoint", "decision"]
Control: TypeAlias = Literal[
    "pause", "resume", "cancel", "answer", "human-answer", "update", "submit", "review"
]


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that the table looks at.

    Attributes:
        status: The run's stored status.
        queue_status: The stored status of its place in the queue.
        is_paused: The stored flag; no other fact means "paused".
        has_ambiguous_effect: Whether a person has to say what became of one of its effects.
        is_runner_live: Whether exactly its runner process lives, under an unexpired claim.
        is_turn_open: Whether its session works on its step, or on its end, in a turn of its own.
        request_kind: The kind of its pending request; None without one.
        is_request_delivered: Whether that request stands in the session that has to answer.
        is_answer_accepted: Whether an answer was accepted that no runner has taken yet.
        error_code: Why it ended, or why it is parked; None when there is no stored error.
        error_message: The stored error for people; None where bodies are not read.
    """

    status: RunStatus
    queue_status: QueueStatus
    is_paused: bool = False
    has_ambiguous_effect: bool = False
    is_runner_live: bool = False
    is_turn_open: bool = False
    request_kind: RequestKind | None = None
    is_request_delivered: bool = False
    is_answer_accepted: bool = False
    error_code: str | None = None
    error_message: str | None = None

    @property
    def is_ended(self) -> bool:
        """Whether the run ended."""
        return self.status in _ENDED

    @property
    def is_stuck(self) -> bool:
        """Whether it is parked because of an error."""
        return self.queue_status == "parked" and self.error_code is not None


@dataclass(frozen=True, slots=True)
class Display:
    """What people are told.

    Attributes:
        status: Where the run stands.
        activity: Who works on it; None when nobody does.
        reason: Why it stands there, with the stored error's own message; None when there is nothing
            to say.
        phrase: The same from a fixed set, of at most 160 characters, for lists.
        controls: What may be done, in the order in which it is offered.
        is_live: Whether it goes on by itself or by an answer.
        is_possibly_interrupted: Whether something stopped it that nobody asked for.
    """

    status: DisplayStatus
    activity: Activity | None
    reason: str | None
    phrase: str | None
    controls: tuple[Control, ...]
    is_live: bool
    is_possibly_interrupted: bool


class Why(StrEnum):
    """The fixed reasons; the value is the phrase itself."""

    EFFECT_UNRESOLVED = "An outside effect of the run is unresolved; review it."
    MODEL_REVIEWS = "The model is reviewing the result."
    EFFECT_AMBIGUOUS = "Nobody knows whether an outside effect happened; a person has to say."
    PAUSED = "Paused until somebody resumes it."
    RUNNER_WORKS = "A runner is working on it."
    TURN_WORKS = "Its Pi session is working on it."
    ANSWER_ACCEPTED = "The answer was accepted; waiting for a free runner."
    CHECKPOINT = "Waiting for an answer."
    DECISION = "Waiting for a person's decision."
    AGENT = "Waiting for its Pi session to finish the step."
    DELIVERY = "Waiting until its Pi session takes the step."
    INPUT = "Waiting for input."
    QUEUED = "Waiting for a free runner."
    READY = "Ready to be resumed."
    LOST = "Its runner was lost; the server is recovering it."
    STORED = "It stopped because of an error."


PHRASES: Final[Mapping[str, str]] = {
    "effectAmbiguous": Why.EFFECT_AMBIGUOUS.value,
    "workflowSourceChanged": "The workflow's files changed since the run started.",
    "definitionChanged": "The workflow's definition changed since the run started.",
    "importError": "The workflow's file can no longer be loaded.",
    "runnerNoProgress": "Several runners in a row ended without a new step.",
    "maxSteps": "It took as many steps as it may.",
    "noCase": "A switch had no case for the value that it looked at.",
    "noValue": "A switch found no value where it looked.",
    "notScalar": "A switch looked at a value that it cannot compare.",
}
"""The phrases of stored errors by their code; any other code is `Why.STORED`."""

_ENDED: Final = frozenset({"completed", "failed", "timed_out", "cancelled"})
_WAITS: Final[Mapping[RequestKind, Why]] = {
    "checkpoint": Why.CHECKPOINT,
    "decision": Why.DECISION,
    "agent": Why.AGENT,
    "assistant": Why.AGENT,
}
_DELIVERED: Final = frozenset({"agent", "assistant"})
_ANSWERS: Final[Mapping[RequestKind, tuple[Control, ...]]] = {
    "checkpoint": ("answer",),
    "decision": ("human-answer",),
    "agent": ("update", "submit"),
    "assistant": (),
}
_Told: TypeAlias = tuple[DisplayStatus, Why | None]


def _ended(facts: Facts) -> _Told:
    """Tell how the run ended, and what is still to do about it."""
    if facts.has_ambiguous_effect:
        return facts.status, Why.EFFECT_UNRESOLVED
    if facts.is_turn_open:
        return facts.status, Why.MODEL_REVIEWS
    return facts.status, _stored(facts)


def _works(facts: Facts) -> _Told:
    """Tell who works on the run."""
    return "running", Why.RUNNER_WORKS if facts.is_runner_live else Why.TURN_WORKS


def _waits(facts: Facts) -> _Told:
    """Tell what the run waits for."""
    kind = facts.request_kind
    if kind is None:
        return "waiting", Why.INPUT
    if kind in _DELIVERED and not facts.is_request_delivered:
        return "waiting", Why.DELIVERY
    return "waiting", _WAITS[kind]


def _queues(facts: Facts) -> _Told:
    """Tell whether the run waits for a runner or for somebody who resumes it."""
    if facts.queue_status == "queued":
        return "queued", Why.QUEUED
    return "queued", _stored(facts) or Why.READY


def _settled(facts: Facts) -> _Told:
    """Tell the queue's result, where the run's own is missing."""
    if facts.queue_status == "done":
        return "completed", None
    return "failed" if facts.queue_status == "failed" else "cancelled", _stored(facts)


def _stored(facts: Facts) -> Why | None:
    """Return the stored error as a reason, or None without one."""
    is_known = facts.error_code is not None or facts.error_message is not None
    return Why.STORED if is_known else None


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table.

    Attributes:
        number: Its number in the contract.
        applies: Whether it decides; asked only when no row above it does.
        tell: The status and the reason.
    """

    number: int
    applies: Callable[[Facts], bool]
    tell: Callable[[Facts], _Told]


_ACCEPTED: Final = 5
_LOST: Final = 9
TABLE: Final[tuple[Row, ...]] = (
    Row(1, lambda f: f.is_ended, _ended),
    Row(2, lambda f: f.has_ambiguous_effect, lambda _: ("ambiguous", Why.EFFECT_AMBIGUOUS)),
    Row(3, lambda f: f.is_paused, lambda _: ("paused", Why.PAUSED)),
    Row(4, lambda f: f.is_runner_live or f.is_turn_open, _works),
    Row(_ACCEPTED, lambda f: f.is_answer_accepted, lambda _: ("queued", Why.ANSWER_ACCEPTED)),
    Row(6, lambda f: f.request_kind is not None or f.status == "waiting", _waits),
    Row(7, lambda f: f.queue_status in ("queued", "parked"), _queues),
    Row(8, lambda f: f.queue_status in ("done", "failed", "cancelled"), _settled),
    Row(_LOST, lambda _: True, lambda _: ("queued", Why.LOST)),
)


def display(facts: Facts) -> Display:
    """Decide what people are told about a run.

    Args:
        facts: Stored facts, current claims, live processes.

    Returns:
        The status with its reason and controls, by the first row that applies.
    """
    row = next(row for row in TABLE if row.applies(facts))
    status, why = row.tell(facts)
    activity: Activity | None = None
    if facts.is_runner_live:
        activity = "supervised_runner"
    elif facts.is_turn_open:
        activity = "origin_turn"
    phrase = _phrase(facts, why)
    assert phrase is None or len(phrase) <= LIST_REASON_CHARS_MAX, phrase
    is_stored = why is Why.STORED and facts.error_message is not None
    return Display(
        status=status,
        activity=activity,
        reason=facts.error_message if is_stored else phrase,
        phrase=phrase,
        controls=_controls(facts, row, status),
        is_live=status in ("running", "waiting"),
        is_possibly_interrupted=row.number == _LOST or (facts.is_stuck and not facts.is_ended),
    )


def _phrase(facts: Facts, why: Why | None) -> str | None:
    """Return the fixed phrase of a reason."""
    if why is Why.STORED:
        return PHRASES.get(facts.error_code or "", Why.STORED.value)
    return None if why is None else why.value


def _controls(facts: Facts, row: Row, status: DisplayStatus) -> tuple[Control, ...]:
    """Return what may be done, in order."""
    if status == "ambiguous":
        return ("review",)
    review: tuple[Control, ...] = ("review",) if facts.has_ambiguous_effect else ()
    if status in ("running", "waiting"):
        answers = _ANSWERS[facts.request_kind] if facts.request_kind else ()
        return ("pause", "cancel", *answers, *review)
    if status == "paused":
        return ("resume", "cancel", *review)
    if status == "queued":
        can_resume = facts.queue_status == "parked" and row.number != _ACCEPTED
        return ("resume", "cancel", *review) if can_resume else ("cancel", *review)
    if status != "cancelled" and facts.is_turn_open:
        return ("cancel", *review)
    return review
