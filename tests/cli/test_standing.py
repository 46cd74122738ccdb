"""Why a run is where it is: each state has its sentence, and a command that exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import typer
from typer.core import TyperGroup

from pi_workflows.audit.reading import FileReader
from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.cli.app import app
from pi_workflows.cli.run_view import RunView
from pi_workflows.cli.standing import Standing, standing
from pi_workflows.domain.attempt.boundary import Requeue
from pi_workflows.domain.attempt.question import WaitForInput
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.domain.run.claim import FailLaunch, LoseRunner
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.store.records import Permit
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.run_view import run_view
from tests.kernel.harness import (
    Harness,
    ask,
    begin,
    definition,
    end,
    finish,
    reserve,
    settle,
    try_effect,
)
from tests.kernel.workflows import WORKFLOWS

_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_EFFECT: Final = re.compile(r"effect-[0-9a-f]+")
_LONG: Final = definition({"one": {}}, [{"from": "one", "to": "one"}], max_steps=1_000)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Harness]:
    """Drive a new database."""
    harness = Harness(tmp_path / "state")
    yield harness
    harness.store.close()


def stands(bench: Harness, *, is_worked_on: bool = False, is_live: bool = True) -> Standing:
    """Return where the run stands, as told now."""
    now_ms = bench.clock.now_ms()
    live = frozenset({"run-1"}) if is_worked_on else frozenset[str]()
    with bench.store.snapshot() as read:
        content = run_view(read, "run-1", ProcessFacts(now_ms, live)).content
        view = RunView.parse(canonical.decode(content, depth_max=128))
        return standing(FileReader(read), view, now_ms, is_live=is_live)


def acting(bench: Harness, permit: Permit, recovery: str) -> str:
    """Begin the deploying node and try its effect; return the effect's ID."""
    bench.do(begin("deploy", node_type="action"), permit=permit)
    made = bench.do(reserve("deploy", recovery), permit=permit)
    assert isinstance(made.values, dict)
    effect_id = str(made.values["effectId"])
    bench.do(try_effect(effect_id), permit=permit)
    return effect_id


def gate(bench: Harness) -> None:
    """Let the run ask its question, which is hostile and has two lines."""
    permit = bench.launch(workflow=WORKFLOWS["gate"])
    bench.do(begin("work"), permit=permit)
    bench.do(end("work", 1), begin("gate", node_type="checkpoint"), permit=permit)
    schema: Json = {"type": "object", "properties": {"route": {"enum": ["a", "b"]}}}
    contract = Blob.json({"summary": "Which way?\nSay it.", "answerSchema": schema})
    key = ids.attempt_id("run-1", "gate", 1)
    bench.do(WaitForInput("run-1", key, "checkpoint", contract), permit=permit)


def _queued(bench: Harness) -> None:
    bench.do(bench.start())
    bench.do(bench.start("run-2"))


def _starting(bench: Harness) -> None:
    bench.do(bench.start())
    bench.claim()


def _between(bench: Harness) -> None:
    bench.launch()


def _working(bench: Harness) -> None:
    bench.do(begin("one"), permit=bench.launch())


def _applying(bench: Harness) -> None:
    acting(bench, bench.launch(workflow=WORKFLOWS["manual"]), "manual")


def _answered(bench: Harness) -> None:
    gate(bench)
    request_id = str(bench.dump("interactive_requests")[0][0])
    bench.do(AnswerCheckpoint("run-1", request_id, None, "a", "k", Blob.json({"route": "a"})))


def _paused(bench: Harness) -> None:
    _working(bench)
    bench.do(PauseRun("run-1"), actor=Actor("human", "who"))


def _pausing(bench: Harness) -> None:
    _applying(bench)
    bench.do(PauseRun("run-1"))


def _retry(bench: Harness) -> None:
    permit = bench.launch(workflow=WORKFLOWS["delayed"])
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", outcome="failed"), Requeue("run-1", 2_000), permit=permit)
    bench.clock.advance_ms(-49_000)


def _resting(bench: Harness) -> None:
    permit = bench.launch(workflow=WORKFLOWS["polling"])
    bench.do(begin("look"), permit=permit)
    bench.do(end("look", {"route": "a"}), begin("rest"), permit=permit)
    bench.do(end("rest"), Requeue("run-1", 3_000), permit=permit)
    bench.clock.advance_ms(-48_000)


def _backoff(bench: Harness) -> None:
    _working(bench)
    bench.do(LoseRunner("run-1", 0, counted=True, detail="exit code 9"))
    bench.clock.advance_ms(-49_500)


def _stuck(bench: Harness) -> None:
    bench.launch()
    for _ in range(2):
        bench.do(LoseRunner("run-1", 0, counted=True, detail="exit code 9"))
        bench.clock.advance_ms(10_000)
        bench.relaunch()
    bench.do(LoseRunner("run-1", 0, counted=True, detail="exit code 9"))


def _changed(bench: Harness) -> None:
    bench.do(bench.start())
    permit = bench.claim()
    failure = Failure("workflowSourceChanged", "/project/sample_workflow.py is not as it was.")
    bench.do(FailLaunch("run-1", failure), permit=permit)


def _doubtful(bench: Harness) -> None:
    _applying(bench)
    bench.do(LoseRunner("run-1", 0, counted=True, detail="exit code 9"))


def _completed(bench: Harness) -> None:
    permit = bench.launch(workflow=definition({"one": {}}))
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", 1), finish(1), permit=permit)


def _failed(bench: Harness) -> None:
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", outcome="failed"), finish(outcome="failed"), permit=permit)


def _timed_out(bench: Harness) -> None:
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", outcome="timed_out"), finish(outcome="timed_out"), permit=permit)


def _cancelled(bench: Harness) -> None:
    bench.do(bench.start())
    bench.do(CancelRun("run-1"))


def _unsettled(bench: Harness) -> None:
    _applying(bench)
    bench.do(CancelRun("run-1"))


@dataclass(frozen=True, slots=True)
class Case:
    """A state of a run, and what is said of it."""

    life: Callable[[Harness], None]
    code: str
    sentence: str
    command: str | None = None
    is_worked_on: bool = False


_SINCE: Final = "since <moment> (50.0 s)"
_AGO: Final = "at <moment> (50.0 s ago)"
CASES: Final = (
    Case(
        _queued,
        "queued",
        f"It has waited for a free runner {_SINCE}; 1 other run queued, 0 running.",
    ),
    Case(
        _starting,
        "starting",
        f"A runner (claim 1) was started for it {_AGO}.",
        is_worked_on=True,
    ),
    Case(
        _between,
        "running",
        f"A runner (claim 1) has had it between two nodes {_SINCE}.",
        is_worked_on=True,
    ),
    Case(
        _working,
        "running",
        f"A runner (claim 1) has worked on one {_SINCE}.",
        is_worked_on=True,
    ),
    Case(
        _applying,
        "running",
        f"A runner (claim 1) has worked on deploy {_SINCE}, and applies its effect deploy (try 1).",
        is_worked_on=True,
    ),
    Case(_working, "lost", "Its runner was lost; the server is recovering it."),
    Case(
        gate,
        "waiting",
        f"gate has waited for an answer (checkpoint) {_SINCE}: Which way?",
        'pi-workflows answer run-1 \'{"route":"a"}\'',
    ),
    Case(
        _answered,
        "answered",
        f"Its answer was accepted, and it has waited for a free runner {_SINCE};"
        " 0 other runs queued, 0 running.",
    ),
    Case(
        _paused,
        "paused",
        f"It was paused by a person {_AGO}.",
        "pi-workflows resume run-1",
    ),
    Case(
        _pausing,
        "paused",
        f"It was paused by a local command {_AGO}; its runner still finishes deploy.",
        "pi-workflows resume run-1",
        is_worked_on=True,
    ),
    Case(_retry, "retry", "one is tried again at <moment> (in 1.0 s)."),
    Case(_resting, "delay", "It goes on by itself at <moment> (in 1.0 s)."),
    Case(
        _backoff,
        "backoff",
        "Its runner was lost (exit code 9); a new one may start at <moment> (in 0.5 s).",
    ),
    Case(
        _stuck,
        "runnerNoProgress",
        "Its runners keep ending without a new step (runnerNoProgress), and it has stood still"
        f" {_SINCE}: 3 runners in a row ended without a new step: exit code 9.",
        "pi-workflows resume run-1",
    ),
    Case(
        _changed,
        "workflowSourceChanged",
        "The workflow's files changed since the run started (workflowSourceChanged), and it"
        f" has stood still {_SINCE}: /project/sample_workflow.py is not as it was.",
        "pi-workflows resume run-1",
    ),
    Case(
        _doubtful,
        "effectAmbiguous",
        f"Nobody has known {_SINCE} whether the effect deploy of deploy happened (try 1);"
        " a person has to confirm, retry or reject it.",
        "pi-workflows effects resolve <effect> confirm --evidence 'what you saw'",
    ),
    Case(_completed, "completed", f"It completed {_AGO}, 0.0 s after it was asked for."),
    Case(
        _failed,
        "failed",
        f"It failed {_AGO}, 0.0 s after it was asked for: it did not work (nodeFailed).",
        "pi-workflows restart run-1",
    ),
    Case(
        _timed_out,
        "timedOut",
        f"It timed out {_AGO}, 0.0 s after it was asked for: it did not work (nodeFailed).",
        "pi-workflows restart run-1",
    ),
    Case(
        _cancelled,
        "cancelled",
        f"It was cancelled by a local command {_AGO}, 0.0 s after it was asked for.",
        "pi-workflows restart run-1",
    ),
    Case(
        _unsettled,
        "effectAmbiguous",
        f"Nobody has known {_SINCE} whether the effect deploy of deploy happened (try 1);"
        " a person has to confirm, retry or reject it.",
        "pi-workflows effects resolve <effect> confirm --evidence 'what you saw'",
    ),
)


def plain(text: str | None) -> str | None:
    """Return a text without moments and digests."""
    return None if text is None else _EFFECT.sub("<effect>", _MOMENT.sub("<moment>", text))


def parse(line: str) -> None:
    """Let the program's own parser read a command line; it raises when it is none."""
    program, *words = shlex.split(line)
    assert program == "pi-workflows"
    command = typer.main.get_command(app)
    while isinstance(command, TyperGroup):
        command = command.commands[words.pop(0)]
    command.make_context(command.name, words)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.life.__name__).strip("_"))
def test_each_state_has_its_sentence_and_its_command(bench: Harness, case: Case) -> None:
    """What is said is the whole truth in one sentence, and what helps is a command that exists."""
    case.life(bench)
    bench.clock.advance_ms(50_000)
    found = stands(bench, is_worked_on=case.is_worked_on)
    assert (found.code, plain(found.sentence)) == (case.code, case.sentence)
    assert plain(found.command) == case.command
    if found.command is not None:
        parse(found.command)


def test_no_command_is_taken_that_does_not_exist() -> None:
    """The parser of these tests refuses what the program refuses."""
    with pytest.raises(KeyError):
        parse("pi-workflows dance run-1")
    for line in ("pi-workflows resume", "pi-workflows effects resolve effect-1 confirm"):
        with pytest.raises(typer.TyperException):
            parse(line)


def test_nobody_works_on_the_runs_of_a_file(bench: Harness) -> None:
    """What a runner had when the file was written is told as past, and nobody recovers it."""
    _working(bench)
    found = stands(bench, is_live=False)
    assert (found.code, plain(found.sentence)) == (
        "running",
        "A runner (claim 1) had worked on one since <moment> (0.0 s).",
    )


def test_a_file_has_no_queue(bench: Harness) -> None:
    """How many others wait is told of a live server only."""
    _queued(bench)
    assert plain(stands(bench, is_live=False).sentence) == (
        "It has waited for a free runner since <moment> (0.0 s)."
    )


def test_a_claim_is_found_however_old_it_is(bench: Harness) -> None:
    """The newest events may not have it; it is looked for page by page."""
    permit = bench.launch(workflow=_LONG)
    for number in range(1, 301):
        bench.do(
            begin("one", visit=number, number=number), end("one", 1, number=number), permit=permit
        )
    bench.do(begin("one", visit=301, number=301), permit=permit)
    assert stands(bench, is_worked_on=True).sentence.startswith("A runner (claim 1) has worked on")


def test_a_resumed_run_waits_since_it_was_resumed(bench: Harness) -> None:
    """The queue's time begins with what put the run there."""
    _paused(bench)
    bench.clock.advance_ms(60_000)
    bench.do(ResumeRun("run-1"))
    bench.clock.advance_ms(5_000)
    assert "(5.0 s)" in stands(bench).sentence


def test_a_question_without_a_form_takes_any_value(bench: Harness) -> None:
    """The example of its answer is a placeholder that the parser takes."""
    permit = bench.launch(workflow=WORKFLOWS["gate"])
    bench.do(begin("work"), permit=permit)
    bench.do(end("work", 1), begin("gate", node_type="checkpoint"), permit=permit)
    bench.do(ask("gate"), permit=permit)
    found = stands(bench)
    assert found.command == "pi-workflows answer run-1 VALUE"
    parse(found.command)


def test_a_settled_effect_is_no_reason(bench: Harness) -> None:
    """An effect that was applied is not told any more."""
    permit = bench.launch(workflow=WORKFLOWS["manual"])
    effect_id = acting(bench, permit, "manual")
    bench.do(settle(effect_id), permit=permit)
    assert "effect" not in stands(bench, is_worked_on=True).sentence
