"""How a story tells what passes between a run and its Pi session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pi_workflows.base.measures import duration
from pi_workflows.domain.message.events import (
    MessageCreated,
    MessageRecoveryStopped,
    MessageSent,
    TurnStarted,
    TurnStopped,
)
from pi_workflows.domain.request.events import RequestCancelled, RequestValidated
from pi_workflows.domain.run.events import RunInteractionTimeoutStarted
from pi_workflows.domain.session_rows import RecoveryStop, TurnEnd
from pi_workflows.views.story_narrator import Attempt, Message, Narrator

_STOPS: Final[Mapping[RecoveryStop, str]] = {
    "cancelled": "the run was cancelled",
    "timed_out": "the turn about its end took too long",
    "interrupted": "the turn about its end was interrupted",
}
_ENDS: Final[Mapping[TurnEnd, str]] = {
    "completed": "ended",
    "aborted": "was interrupted",
    "error": "failed",
    "lost": "was lost",
}


def created(narrator: Narrator, fact: MessageCreated) -> None:
    """Keep what the session is to be told, and tell why it is told again."""
    row = fact.message
    message = _message(narrator, fact)
    narrator.messages[row.workflow_message_id] = message
    if fact.reason == "reminder":
        narrator.add("the session is reminded of it")
    elif fact.reason == "resumed" and not narrator.add("the session is told again"):
        narrator.say(
            f"The session's branch had lost {message.name}, which is told again",
            node=message.node_id,
        )
    elif row.kind in ("terminal", "followUp"):
        text = f"The Pi session is to be told {message.name}"
        narrator.hold(row.workflow_message_id, text, node=message.node_id)


def sent(narrator: Narrator, fact: MessageSent) -> None:
    """Tell that the session's branch holds a message."""
    key = fact.message.workflow_message_id
    message = narrator.messages[key]
    narrator.drop(key)
    late = ", though it was not wanted any more" if fact.prior_status == "cancelled" else ""
    after = narrator.since(message.made_at_ms)
    narrator.say(
        f"The Pi session was told {message.name} after {after}{late}", node=message.node_id
    )


def recovery_stopped(narrator: Narrator, fact: MessageRecoveryStopped) -> None:
    """Tell that nothing may be launched by itself any more, and why."""
    assert fact.message.recovery_stop is not None, "a stop without its reason"
    why = _STOPS[fact.message.recovery_stop]
    narrator.say(f"Nothing more is launched by itself from the run's end, as {why}")


def turn_started(narrator: Narrator, fact: TurnStarted) -> None:
    """Hold back that the session's model began to work: its end may tell both."""
    turn = fact.turn
    message = narrator.messages[turn.workflow_message_id]
    narrator.turns[turn.workflow_turn_id] = turn.started_at
    text = f"The Pi session began a turn for {message.name}"
    narrator.hold(turn.workflow_turn_id, text, node=message.node_id)


def turn_ended(narrator: Narrator, fact: TurnStopped) -> None:
    """Tell how a turn ended, and what it took."""
    turn = fact.turn
    message = narrator.messages[fact.workflow_message_id]
    narrator.drop(turn.workflow_turn_id)
    took = duration(turn.ended_at - narrator.turns[turn.workflow_turn_id])
    end = _ENDS[turn.stop_reason]
    if turn.stop_reason == "lost" and narrator.add(f"the open turn of its session {end}"):
        return
    then = "; nothing more is launched by itself from it" if fact.message is not None else ""
    narrator.say(
        f"The Pi session's turn for {message.name} {end} after {took}{then}", node=message.node_id
    )


def validated(narrator: Narrator, fact: RequestValidated) -> None:
    """Tell what became of an answer that was checked."""
    asked = _newest(narrator)
    if fact.request is not None:
        verdict = "accepted, and the run was queued"
    else:
        verdict = "refused, and its question stayed open"
    narrator.say(f"The answer of {asked.name} was {verdict}", node=asked.node_id)


def given_up(narrator: Narrator, fact: RequestCancelled) -> None:
    """Tell that a question closed without an answer."""
    assert fact.request is not None, "a closing without its question"
    asked = narrator.asked[fact.request.request_id]
    if fact.reason == "decisionExpired":
        narrator.say(f"Nobody decided {asked.name} in time, {_then(fact)}", node=asked.node_id)
    else:
        narrator.add(f"it was one too many without an answer, {_then(fact)}")


def expired(narrator: Narrator, fact: RunInteractionTimeoutStarted) -> None:
    """Tell that the time for an answer was over."""
    assert fact.request is not None, "a timeout without its question"
    asked = narrator.asked[fact.request.request_id]
    worked = f" after {duration(asked.active_ms)} of the session's work" if asked.active_ms else ""
    narrator.say(
        f"The time for an answer to {asked.name} was over{worked}, {_then(fact)}",
        node=asked.node_id,
    )


def _then(fact: RequestCancelled | RunInteractionTimeoutStarted) -> str:
    """Return what becomes of the run."""
    return "and the run was queued" if fact.queue is not None else "and the run stayed paused"


def _message(narrator: Narrator, fact: MessageCreated) -> Message:
    """Return what a message is about."""
    row = fact.message
    node: str | None = None
    match row.kind:
        case "step":
            attempt = narrator.asked[row.source_id]
            name, node = f"the step {attempt.name}", attempt.node_id
            if fact.reason == "reminder":
                name = f"the reminder of {attempt.name}"
        case "decision":
            asked = _newest(narrator)
            name, node = f"the question of {asked.name}", asked.node_id
        case "notification":
            node = narrator.last_node
            name = f"the notification of {node}"
        case "terminal":
            name = "the run's end"
        case "followUp":
            name = "what was to follow the run"
    return Message(name, node, narrator.told.at_ms)


def _newest(narrator: Narrator) -> Attempt:
    """Return the attempt of the newest question: only that one can be open."""
    return next(reversed(narrator.asked.values()))
