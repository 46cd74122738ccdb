"""What a run does next, from its history and its definition. Pure: the server decides alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pi_workflows.definition.composition import entered, exhausted, exhausted_message
from pi_workflows.definition.paths import ROOT
from pi_workflows.definition.retry import retry_delay_ms
from pi_workflows.definition.route import Next, Unroutable, route
from pi_workflows.definition.selector import NodeOutcome
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.protocol.proposals import Failure
from pi_workflows.protocol.runner import Resume
from pi_workflows.runner.history import History


@dataclass(frozen=True, slots=True)
class Enter:
    """A new attempt of a visit.

    Attributes:
        node_path: The node.
        visit: Which entry of that path, from 1.
        tries: The visit's settled attempts.
        enters: The mounts that are entered anew with it, from the outermost.
    """

    node_path: str
    visit: int
    tries: int
    enters: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Later:
    """Something is due after so many milliseconds; the run leaves its runner until then.

    Attributes:
        delay_ms: How long.
        then: What is due: a retry, or the next node.
    """

    delay_ms: int
    then: Enter


@dataclass(frozen=True, slots=True)
class Over:
    """The run ends.

    Attributes:
        outcome: How.
        output: The final node's output in canonical bytes, of a completed run.
        failure: Why, of a run that is not completed.
    """

    outcome: Literal["completed", "failed", "timed_out"]
    output: bytes | None = None
    failure: Failure | None = None


Step: TypeAlias = Enter | Later | Over


@dataclass(frozen=True, slots=True)
class Settled:
    """The attempt that settled last.

    Attributes:
        node_path: Its node.
        visit: Its visit.
        tries: The visit's settled attempts, this one included.
        outcome: How it ended.
    """

    node_path: str
    visit: int
    tries: int
    outcome: NodeOutcome


def first(snapshot: Snapshot, history: History, resume: Resume | None) -> Step:
    """Return what a runner does first.

    Args:
        snapshot: The definition.
        history: What happened before this launch.
        resume: Where the run stood; None at its start. An accepted answer has already become
            history.

    Returns:
        The first step. What is due after a delay has waited already: that is why this runner was
        launched.
    """
    if resume is not None and resume.open is not None:
        left = resume.open
        return _enter(snapshot, history, Enter(left.node_path, left.visit, left.tries))
    if resume is None or resume.last is None:
        start = snapshot.start_at
        return _enter(snapshot, history, Enter(start, 1, 0, entered(ROOT, start)))
    last = resume.last
    step = after(snapshot, history, Settled(last.node_path, last.visit, last.tries, last.outcome))
    return step.then if isinstance(step, Later) else step


def after(snapshot: Snapshot, history: History, settled: Settled) -> Step:
    """Return what follows a settled attempt, which is part of the history.

    Args:
        snapshot: The definition.
        history: The run so far.
        settled: The attempt.

    Returns:
        A retry of the same visit, the next node, or the run's end.
    """
    path = settled.node_path
    failed = history.failure(path)
    code = failed.code if failed is not None else None
    delay_ms = retry_delay_ms(snapshot.nodes[path], settled.outcome, settled.tries, code)
    if delay_ms is not None:
        return _enter(snapshot, history, Enter(path, settled.visit, settled.tries), delay_ms)
    chosen = route(snapshot, path, settled.outcome, lambda: history.output(path), code)
    if isinstance(chosen, Next):
        visit = history.visits.get(chosen.node_path, 0) + 1
        entry = Enter(chosen.node_path, visit, 0, chosen.enters)
        return _enter(snapshot, history, entry, chosen.delay_ms)
    if isinstance(chosen, Unroutable):
        return Over("failed", failure=Failure.of(chosen.code, chosen.message))
    if chosen.outcome == "completed":
        return Over("completed", output=history.content(path))
    failure = failed or Failure(code="failed", message="no reason is known")
    named = Failure.of(failure.code, f"{path}: {failure.message}")
    return Over("timed_out" if chosen.outcome == "timed_out" else "failed", failure=named)


def _enter(snapshot: Snapshot, history: History, step: Enter, delay_ms: int = 0) -> Step:
    """Return the step, or the run's end when a workflow around it has taken all its steps."""

    def steps(mount: str) -> int:
        return 0 if mount in step.enters else history.step_total - history.began[mount]

    spent = exhausted(snapshot, step.node_path, history.step_total, steps)
    if spent is None:
        return Later(delay_ms, step) if delay_ms else step
    message = exhausted_message(spent, step.node_path)
    return Over("failed", failure=Failure.of("maxSteps", message))
