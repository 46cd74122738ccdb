"""A run's story: what happened, who did it by class, what waited, and where the time went."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json, encode
from pi_workflows.base.errors import NotFound
from pi_workflows.base.sentences import actor_words
from pi_workflows.domain.attempt.boundary import FinishAttempt, Requeue
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.effect.recovery import ResolveEffect
from pi_workflows.domain.events import EVENTS
from pi_workflows.domain.fact import Actor, ActorType
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import FailLaunch, LoseRunner
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.ending import FinishRun
from pi_workflows.domain.run.start import RestartRun
from pi_workflows.views.story import Story, story
from pi_workflows.views.story_table import QUIET, TELLERS
from tests.kernel.harness import (
    START_MS,
    Harness,
    ask,
    begin,
    end,
    finish,
    reserve,
    settle,
    try_effect,
)
from tests.kernel.recovery import recover
from tests.kernel.workflows import WORKFLOWS
from tests.views.test_story_machine import parts_ms

PLANTED: Final = "hunter2-planted"
MINUTE_MS: Final = 60_000


def told(bench: Harness, run_id: str = "run-1") -> Story:
    """Return a run's story as it can be told now."""
    with bench.store.snapshot() as read:
        return story(read, run_id)


def lines(of: Story) -> list[str]:
    """Return a story as people read it, with the seconds since its beginning."""
    totals = of.totals.document()
    spent = ", ".join(f"{name} {ms}" for name, ms in totals.items() if ms)
    sentences = [
        f"{(each.at_ms - START_MS) / 1_000:g} {each.actor} {each.type}: {each.text}"
        for each in of.sentences
    ]
    return [f"{of.workflow_name} {of.status}", *sentences, spent]


def answer(bench: Harness, value: Json, actor: ActorType = "control") -> None:
    """Answer the open question."""
    request_id = str(bench.dump("interactive_requests")[0][0])
    command = AnswerCheckpoint("run-1", request_id, None, "answer-1", "key", Blob.json(value))
    bench.do(command, actor=Actor(actor, PLANTED))


def retried(bench: Harness) -> None:
    """A node fails, is tried again after its delay, and succeeds; the run completes."""
    permit = bench.launch(workflow=WORKFLOWS["delayed"])
    bench.clock.advance_ms(250)
    first = begin("one")
    bench.do(first, permit=permit)
    bench.clock.advance_ms(1_500)
    bench.do(end("one", outcome="failed", elapsed_ms=1_490), Requeue("run-1", 2_000), permit=permit)
    bench.clock.advance_ms(2_400)
    permit = bench.relaunch()
    bench.do(begin("one", number=2), permit=permit)
    bench.clock.advance_ms(700)
    bench.do(end("one", {"n": 1}, number=2, elapsed_ms=700), begin("two"), permit=permit)
    bench.clock.advance_ms(50_000)
    bench.do(end("two", "done", elapsed_ms=50_000), finish("done"), permit=permit)


def answered(bench: Harness) -> None:
    """A run waits for an answer, is paused meanwhile, and goes on with the answer."""
    permit = bench.launch(workflow=WORKFLOWS["gate"])
    bench.do(begin("work"), permit=permit)
    bench.clock.advance_ms(1_000)
    gate = begin("gate", node_type="checkpoint")
    bench.do(end("work", 1, elapsed_ms=1_000), gate, permit=permit)
    bench.do(ask("gate"), permit=permit)
    bench.clock.advance_ms(5 * MINUTE_MS)
    bench.do(PauseRun("run-1"))
    bench.clock.advance_ms(2 * MINUTE_MS)
    bench.do(ResumeRun("run-1"), actor=Actor("human", PLANTED))
    bench.clock.advance_ms(MINUTE_MS)
    answer(bench, {"route": "a"}, "human")
    bench.clock.advance_ms(3_000)
    permit = bench.relaunch()
    bench.do(end("gate", {"route": "a"}), begin("after"), permit=permit)
    bench.do(end("after", None), finish(None), permit=permit)


def doubtful(bench: Harness) -> None:
    """A manual effect is lost with the server, and people say what became of it."""
    permit = bench.launch(workflow=WORKFLOWS["manual"])
    bench.do(begin("deploy", node_type="action"), permit=permit)
    made = bench.do(reserve("deploy", "manual"), permit=permit)
    assert isinstance(made.values, dict)
    effect_id = str(made.values["effectId"])
    bench.do(try_effect(effect_id), permit=permit)
    bench.clock.advance_ms(4_000)
    bench.store.crash()
    bench.clock.advance_ms(30_000)
    recover(bench)
    bench.clock.advance_ms(20 * MINUTE_MS)
    retry = ResolveEffect("run-1", effect_id, 1, "retry", f"seen {PLANTED}")
    bench.do(retry, actor=Actor("human", PLANTED))
    permit = bench.relaunch()
    bench.do(begin("deploy", number=2, node_type="action"), permit=permit)
    bench.do(try_effect(effect_id, 2), permit=permit)
    bench.do(settle(effect_id, "rejected", 2), permit=permit)
    bench.do(end("deploy", number=2, outcome="failed"), begin("late"), permit=permit)
    bench.do(end("late", None), finish(None), permit=permit)


def hopeless(bench: Harness) -> None:
    """Three runners are lost; somebody lets the run go on, and its files have changed."""
    permit = bench.launch(workflow=WORKFLOWS["idempotent"])
    bench.do(begin("deploy", node_type="action"), permit=permit)
    made = bench.do(reserve("deploy"), permit=permit)
    assert isinstance(made.values, dict)
    bench.do(try_effect(str(made.values["effectId"])), permit=permit)
    for _ in range(2):
        bench.clock.advance_ms(1_000)
        bench.do(LoseRunner("run-1", 0, counted=True, detail="exit code 9"), actor=Actor("host"))
        bench.clock.advance_ms(10_000)
        bench.relaunch()
    bench.clock.advance_ms(1_000)
    bench.do(LoseRunner("run-1", 0, counted=True, detail="exit code 9"), actor=Actor("host"))
    bench.clock.advance_ms(MINUTE_MS)
    bench.do(ResumeRun("run-1"))
    permit = bench.claim()
    failure = Failure("workflowSourceChanged", "sample_workflow.py is not as it was.")
    bench.do(FailLaunch("run-1", failure), permit=permit)


def started_over(bench: Harness) -> None:
    """A run is cancelled with its question open, and started over."""
    permit = bench.launch(workflow=WORKFLOWS["gate"])
    bench.do(begin("work"), permit=permit)
    update = RecordUpdate(
        "run-1", ids.attempt_id("run-1", "work", 1), "progress", "k", Blob.json({"label": PLANTED})
    )
    bench.do(update, permit=permit)
    gate = begin("gate", node_type="checkpoint")
    bench.do(end("work", PLANTED), gate, permit=permit)
    bench.do(ask("gate"), permit=permit)
    bench.clock.advance_ms(MINUTE_MS)
    bench.do(CancelRun("run-1"))
    bench.clock.advance_ms(MINUTE_MS)
    bench.do(RestartRun("run-1", bench.revision()))


def failing(bench: Harness) -> None:
    """A node runs out of time and nobody takes care of it."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.clock.advance_ms(50_000)
    overdue = FinishAttempt(
        "run-1",
        ids.attempt_id("run-1", "one", 1),
        "timed_out",
        failure=Failure("timedOut", "not done within 50 s of active time.\nAnd more."),
        elapsed_ns=50_000_000_000,
    )
    bench.do(overdue, permit=permit)
    ended = FinishRun("run-1", "timed_out", failure=Failure("timedOut", "one ran out of time"))
    bench.do(ended, permit=permit)


def paused(bench: Harness) -> None:
    """A run is paused in the middle of an effect, stands still after it, and is let go."""
    permit = bench.launch(workflow=WORKFLOWS["manual"])
    bench.do(begin("deploy", node_type="action"), permit=permit)
    made = bench.do(reserve("deploy", "manual"), permit=permit)
    assert isinstance(made.values, dict)
    effect_id = str(made.values["effectId"])
    bench.do(try_effect(effect_id), permit=permit)
    bench.clock.advance_ms(500)
    bench.do(PauseRun("run-1"))
    bench.clock.advance_ms(500)
    bench.do(settle(effect_id), permit=permit)
    bench.clock.advance_ms(MINUTE_MS)
    bench.do(ResumeRun("run-1"))
    permit = bench.relaunch()
    bench.do(begin("deploy", number=2, node_type="action"), permit=permit)


LIVES: Final[tuple[Callable[[Harness], None], ...]] = (
    retried,
    answered,
    doubtful,
    hopeless,
    started_over,
    failing,
    paused,
)


@pytest.mark.parametrize("life", LIVES, ids=lambda life: str(life.__name__))
def test_stories(
    bench: Harness, snapshot: SnapshotAssertion, life: Callable[[Harness], None]
) -> None:
    """A story is plain English in the past tense, the same whenever told; its times add up."""
    life(bench)
    found = lines(told(bench))
    totals = told(bench).totals
    assert parts_ms(totals) == totals.wall_ms
    assert found == snapshot
    assert lines(told(bench)) == found


def test_a_restart_tells_where_it_comes_from(bench: Harness) -> None:
    """The new run's story begins with the one that it starts over; the old one's ends with it."""
    started_over(bench)
    child = next(row for row in bench.dump("runs") if row[3] is not None)
    new = told(bench, str(child[0]))
    assert "started the run run-1 over" in new.sentences[0].text
    assert str(child[0]) in told(bench).sentences[-1].text


@pytest.mark.parametrize("life", LIVES, ids=lambda life: str(life.__name__))
def test_no_sentence_holds_what_a_run_holds(
    bench: Harness, life: Callable[[Harness], None]
) -> None:
    """Neither identities nor inputs, outputs, answers, evidence or progress stand in a story."""
    life(bench)
    content = encode(told(bench).document()).decode()
    for secret in (PLANTED, "task", "command-", "host-", "worker-", "Go on?", "do it", "route"):
        assert secret not in content, secret


def test_a_message_is_told_in_one_line(bench: Harness) -> None:
    """Of an error's message the first line is told, at most 200 characters of it."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    failed = FinishAttempt(
        "run-1",
        ids.attempt_id("run-1", "one", 1),
        "failed",
        failure=Failure("nodeFailed", f"{'x' * 500}\nsecond"),
    )
    bench.do(failed, permit=permit)
    (text,) = (each.text for each in told(bench).sentences if each.node_id == "one")
    assert text.endswith(f"failed: {'x' * 199}… (nodeFailed).")


def test_every_event_is_told_or_quiet() -> None:
    """Each kind of event has its words, or is quiet on purpose; none is both."""
    assert TELLERS.keys() | QUIET == set(EVENTS.values())
    assert not TELLERS.keys() & QUIET


@pytest.mark.parametrize(
    "actor",
    ["session", "host", "controller", "channel", "human", "policy", "control", "system"],
)
def test_every_class_of_actor_has_words(actor: str) -> None:
    """Whoever acts is named by class."""
    assert actor_words(actor).startswith(("a ", "the "))


def test_a_run_that_is_not_there_has_no_story(bench: Harness) -> None:
    """Asking for it is told as such."""
    with pytest.raises(NotFound), bench.store.snapshot() as read:
        story(read, "run-0")


def test_what_has_not_ended_is_told_last(bench: Harness) -> None:
    """A node that still runs has begun, and a runner that is not ready was started."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    assert told(bench).sentences[-1].text == "one began (limit 15 min)."
    bench.do(LoseRunner("run-1", 0, counted=False, detail="killed"))
    bench.claim()
    assert told(bench).sentences[-1].text == "The server started a runner (claim 2)."


def test_a_wall_clock_that_is_set_back_takes_no_time(bench: Harness) -> None:
    """Wall time runs forward only; what was measured beyond it is told apart."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.clock.wall_ms -= 3_600_000
    bench.do(end("one", 1, elapsed_ms=5_000), permit=permit)
    totals = told(bench).totals
    assert (totals.wall_ms, totals.active_ms, totals.excess_ms) == (0, 5_000, 5_000)


def test_a_stopped_server_interrupts_whatever_comes_next(bench: Harness) -> None:
    """What passed since the last sign of life is told apart, also when a cancel comes first."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.store.crash()
    bench.clock.advance_ms(MINUTE_MS)
    recover(bench, commands_max=1)
    bench.do(CancelRun("run-1"))
    assert told(bench).totals.interrupted_ms == MINUTE_MS
