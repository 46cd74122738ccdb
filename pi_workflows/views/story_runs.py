"""How a story tells the events of a run's own resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pi_workflows.base.measures import duration, plural
from pi_workflows.base.sentences import one_line
from pi_workflows.domain.attempt.events import AttemptSettled, AttemptStarted
from pi_workflows.domain.effect.events import EffectRecovered
from pi_workflows.domain.request.events import RequestSubmitted
from pi_workflows.domain.rows import RequestChange
from pi_workflows.domain.run.control import AFTER_STEP
from pi_workflows.domain.run.events import (
    LeaseClaimed,
    LeaseReleased,
    RunCancelled,
    RunCompleted,
    RunEffectAmbiguous,
    RunEnded,
    RunEvent,
    RunParked,
    RunPaused,
    RunQueued,
    RunRequeued,
    RunResumeRequested,
    RunTimedOut,
    RunWaiting,
    RunWorkerNoProgress,
)
from pi_workflows.domain.run.state import NODE_OUTCOME
from pi_workflows.views.story_narrator import Attempt, Narrator
from pi_workflows.views.story_times import DELAY, RETRY, SERVER_LOST
from pi_workflows.views.story_values import DIGEST_CHARS

_CLAIM: Final = "claim"
# Nobody waits for less.
_SOON_MS: Final = 1_000
_KINDS: Final[Mapping[str, str]] = {"file": "a file", "builtin": "a built-in"}
_QUESTIONS: Final[Mapping[str, str]] = {
    "checkpoint": "asked for an answer",
    "decision": "asked for a person's decision",
    "agent": "asked its Pi session to do the step",
    "assistant": "asked its Pi session for a message",
}
_ANSWERS: Final[Mapping[str, str]] = {
    "accepted": "which was accepted",
    "rejected": "which was refused",
    "validating": "which is being checked",
    "adopted": "which had been given before",
}


def queued(narrator: Narrator, fact: RunQueued) -> None:
    """Tell who asked for the run, and for which workflow."""
    name = fact.definition.workflow_name
    if fact.run.parent_run_id is not None:
        narrator.say(
            f"{narrator.who} started the run {fact.run.parent_run_id} over, with the same workflow"
            f" {name} and the same input (restart {fact.run.restart_number})"
        )
        return
    root, *mounts = sorted(fact.sources, key=lambda source: source.mount_path)
    included = f" with {plural(len(mounts), 'included workflow')}" if mounts else ""
    revision = root.source_revision[:DIGEST_CHARS]
    session = " for a Pi session" if fact.binding.execution_mode == "interactive" else ""
    given = narrator.values.described(fact.run.input_hash, "input")
    narrator.say(
        f"{narrator.who} asked{session} for the workflow {name} from {_KINDS[root.source_type]}"
        f" (revision {revision}){included}, with {given}"
    )


def claimed(narrator: Narrator, fact: LeaseClaimed) -> None:
    """Hold back that a runner is being started."""
    narrator.claim = fact.lease.generation if fact.lease is not None else 0
    narrator.hold(_CLAIM, f"The server started a runner (claim {narrator.claim})")


def taken(narrator: Narrator, _fact: RunEvent) -> None:
    """Tell that a runner has the run."""
    narrator.drop(_CLAIM)
    waited_ms = narrator.told.at_ms - narrator.queued_ms
    after = f"after {duration(waited_ms)} in the queue" if waited_ms >= _SOON_MS else "at once"
    narrator.say(f"A runner took the run {after} (claim {narrator.claim})")


def released(narrator: Narrator, fact: LeaseReleased) -> None:
    """Tell that a runner left a paused run; what a lost server held is told with its run."""
    if fact.reason == SERVER_LOST:
        return
    is_queued = fact.queue is not None and fact.queue.status == "queued"
    then = "the run was queued again" if is_queued else "the run stood still"
    if not narrator.add(f"the runner left, and {then}"):
        narrator.say(f"The runner left, and {then}")


def requeued(narrator: Narrator, fact: RunRequeued) -> None:
    """Tell that the run waits for a runner again, and why."""
    if isinstance(narrator.before, EffectRecovered):
        narrator.add("the run was queued again")
        return
    delay_ms = fact.queue.available_at - narrator.told.at_ms if fact.queue is not None else 0
    if fact.reason == RETRY:
        delay = duration(delay_ms)
        if not narrator.add(f"it is to be tried again in {delay}"):
            node = narrator.last_node
            narrator.say(f"{node} is to be tried again in {delay}", node=node)
        return
    if fact.reason == DELAY:
        delay = duration(delay_ms)
        if not narrator.add(f"the run was to go on in {delay}"):
            narrator.say(f"The run was to go on in {delay}")
        return
    then = f"the run was queued for another one{_later(delay_ms)}"
    _lost(narrator, fact.reason, _cut(narrator, fact), then)


def _later(delay_ms: int) -> str:
    """Return when a run may go on that had to be left."""
    return f", {duration(delay_ms)} later at the earliest" if delay_ms > 0 else ""


def _lost(narrator: Narrator, why: str, cut: Attempt | None, then: str) -> None:
    """Tell that a runner was lost, and what became of the run."""
    during = f" while {cut.name} was running{_worked(cut)}" if cut is not None else ""
    is_recovery = narrator.told.actor == "system"
    found = f"{narrator.who} found the runner gone" if is_recovery else "The runner was lost"
    narrator.drop(_CLAIM)
    narrator.say(
        f"{found}{during} ({one_line(why)}); {then}", node=cut.node_id if cut is not None else None
    )


def _cut(narrator: Narrator, fact: RunEvent) -> Attempt | None:
    """Return the attempt that an event cuts off."""
    if fact.attempt is None or fact.attempt.status == "waiting":
        return None
    return narrator.attempts[fact.attempt.attempt_id]


def _worked(attempt: Attempt) -> str:
    """Return how long an attempt was active that was cut off, if that was measured."""
    return f", after {duration(attempt.active_ms)} of work" if attempt.active_ms else ""


def parked(narrator: Narrator, fact: RunParked) -> None:
    """Tell that the run stands still until a person acts, and why."""
    still = f"the run stood still until somebody acted ({fact.code})"
    cut = _cut(narrator, fact)
    if isinstance(fact, RunWorkerNoProgress):
        narrator.drop(_CLAIM)
        narrator.say(f"{one_line(fact.detail)}; {still}", node=cut.node_id if cut else None)
        return
    if isinstance(fact, RunEffectAmbiguous):
        effect = narrator.effects[fact.effect_id]
        worked = _worked(cut) if cut is not None else ""
        narrator.say(
            f"{effect.node_id} was cut off{worked}, and nobody knew whether its effect"
            f" {effect.type} had happened; {still}",
            node=effect.node_id,
        )
        return
    is_claimed = narrator.drop(_CLAIM)
    claim = f" (claim {narrator.claim})" if is_claimed else ""
    narrator.say(f"A runner{claim} could not begin: {one_line(fact.detail)}; {still}")


def waiting(narrator: Narrator, fact: RunWaiting) -> None:
    """Tell that the run waits for an answer."""
    request = fact.request
    attempt = narrator.attempts[request.attempt_id]
    attempt.asked_at_ms = narrator.told.at_ms
    narrator.asked[request.request_id] = attempt
    narrator.take_over(request.attempt_id)
    after = duration(attempt.active_ms)
    narrator.say(
        f"{attempt.name} {_QUESTIONS[request.kind]} ({request.kind}) after {after}, and the run"
        " waited for it without a runner",
        node=attempt.node_id,
    )


def submitted(narrator: Narrator, fact: RequestSubmitted) -> None:
    """Tell that an answer arrived, and what became of it."""
    asked = narrator.asked[fact.submission.request_id]
    assert asked.asked_at_ms is not None, "an answer to a question that is not open"
    waited = f" after {narrator.since(asked.asked_at_ms)}"
    given = narrator.values.described(fact.submission.payload_hash)
    narrator.say(
        f"{narrator.who} answered {asked.name}{waited} with {given},"
        f" {_ANSWERS[fact.submission.outcome]}",
        node=asked.node_id,
    )


def paused(narrator: Narrator, fact: RunPaused) -> None:
    """Tell that the run was paused."""
    narrator.drop(_CLAIM)
    if fact.detail == AFTER_STEP:
        narrator.say(f"{narrator.who} asked the run to pause after its current step")
        return
    attempt = _cut(narrator, fact)
    cut = ""
    if attempt is not None:
        cut = f"; {attempt.name} was cut off{_worked(attempt)}"
    narrator.say(f"{narrator.who} paused the run{cut}")


def resume_requested(narrator: Narrator, fact: RunResumeRequested) -> None:
    """Tell that somebody let the run go on."""
    stopped_ms = narrator.stopped_ms
    still = f" after {narrator.since(stopped_ms)}" if stopped_ms is not None else ""
    then = "it was queued again" if fact.queue is not None else "its runner had not left yet"
    if fact.queue is None and fact.run is not None and fact.run.status == "waiting":
        then = "its question stayed open"
    narrator.say(f"{narrator.who} let the run go on{still}; {then}")


def attempt_started(narrator: Narrator, fact: AttemptStarted) -> None:
    """Hold back that a node began: its end may tell both."""
    row = fact.attempt
    attempt = Attempt(row.node_id, row.visit_number, row.attempt_number, row.timeout_ms or 0)
    narrator.attempts[row.attempt_id] = attempt
    narrator.hold(row.attempt_id, f"{attempt.name} began{attempt.limit}", node=row.node_id)


def attempt_settled(narrator: Narrator, fact: AttemptSettled) -> None:
    """Tell how an attempt ended, and what it gave."""
    change = fact.attempt
    attempt = narrator.attempts[change.attempt_id]
    clauses = narrator.take_over(change.attempt_id)
    after = ""
    if clauses is not None:
        clauses.insert(0, f"ran for {duration(attempt.active_ms)}{attempt.limit}")
    elif attempt.asked_at_ms is None:
        after = f" after {duration(attempt.active_ms)}"
    outcome = NODE_OUTCOME[change.status]
    end = _end(narrator, fact, attempt, after)
    narrator.say(
        f"{attempt.name} {_joined([*(clauses or []), end])}",
        node=attempt.node_id,
        outcome=outcome,
    )
    attempt.asked_at_ms = None
    narrator.last_node = attempt.node_id


def _end(narrator: Narrator, fact: AttemptSettled, attempt: Attempt, after: str) -> str:
    """Return how an attempt ended, as a part of a sentence."""
    change = fact.attempt
    output, error = change.output_hash, change.error_hash
    why = f": {narrator.values.failure(error)}" if error is not None else ""
    match change.status:
        case "completed" if output is not None:
            given = narrator.values.described(output, "output")
            took = "took its answer and " if attempt.asked_at_ms is not None else ""
            return f"{took}gave {given}{after}"
        case "timed_out":
            return f"ran out of time{after}{why}"
        case "cancelled":
            return f"was cancelled{after}{why}"
        case _:
            return f"failed{after}{why}"


def _joined(clauses: Sequence[str]) -> str:
    """Return parts of a sentence as one."""
    *others, last = clauses
    return f"{', '.join(others)} and {last}" if others else last


def ended(narrator: Narrator, fact: RunEnded) -> None:
    """Tell how the run ended."""
    run = fact.run
    output, error = (run.final_output_hash, run.error_hash) if run is not None else (None, None)
    after = f"{narrator.since(narrator.began_ms)} after it was asked for"
    why = f": {narrator.values.failure(error)}" if error is not None else ""
    if isinstance(fact, RunCompleted):
        given = f" with {narrator.values.described(output, 'output')}" if output else ""
        text = f"The run completed{given}, {after}"
    elif isinstance(fact, RunCancelled):
        text = f"{narrator.who} cancelled the run, {after}"
    elif isinstance(fact, RunTimedOut):
        text = f"The run timed out {after}{why}"
    else:
        text = f"The run failed {after}{why}"
    attempt = narrator.attempts.get(fact.attempt.attempt_id) if fact.attempt is not None else None
    if attempt is not None and not fact.requests:
        text += f"; {attempt.name} ended with it"
    narrator.drop(_CLAIM)
    narrator.say(f"{text}{_withdrawn(fact.requests)}")


def _withdrawn(requests: Sequence[RequestChange]) -> str:
    """Return what became of the run's question."""
    return "; its question was withdrawn" if requests else ""
