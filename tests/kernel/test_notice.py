"""What nodes tell a session, and what a model is told: facts of the attempt, in one command."""

from __future__ import annotations

from typing import Final

import pytest

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.domain.attempt.boundary import FinishAttempt, StartAttempt
from pi_workflows.domain.attempt.notice import Notify
from pi_workflows.domain.attempt.question import WaitForInput
from pi_workflows.domain.run.claim import LoseRunner
from tests.kernel.harness import SESSION, Harness, begin, definition, end
from tests.kernel.workflows import agent, speaker

SAYS: Final = definition(
    {"say": {"type": "notify", "notifyKind": "progress"}, "two": {}}, [{"from": "say", "to": "two"}]
)


def said(value: Json = "half done", *, number: int = 1, kind: str = "progress") -> Notify:
    """Return the command with which the notifying node gives its text."""
    key = ids.attempt_id("run-1", "say", number)
    return Notify("run-1", key, Blob.json(value), kind, 5_000_000)  # type: ignore[arg-type] # also a wrong kind


def messages(bench: Harness) -> list[tuple[object, ...]]:
    """Return kind, source and status of every message."""
    return [(row[3], row[4], row[7]) for row in bench.dump("workflow_messages")]


def stored(bench: Harness) -> dict[object, object]:
    """Return every stored value with its media type, by its bytes."""
    return {row[3]: row[1] for row in bench.dump("blobs")}


def attempt(bench: Harness, node: str) -> dict[str, object]:
    """Return status, output and prompt of a node's newest attempt."""
    row = [each for each in bench.dump("node_attempts") if each[2] == node][-1]
    return {"status": row[6], "prompt": row[7], "output": row[8]}


def test_a_notification_settles_its_attempt_and_tells_the_session(bench: Harness) -> None:
    """One command: the attempt is completed with the text, and a message waits for Pi."""
    permit = bench.launch(workflow=SAYS, session=SESSION)
    bench.do(begin("say", node_type="notify"), permit=permit)
    answer = bench.do(said(), permit=permit)
    assert [event.fact.type for event in answer.events] == ["attempt.settled", "message.created"]
    assert attempt(bench, "say")["status"] == "completed"
    assert attempt(bench, "say")["output"] == Blob.json("half done").digest
    assert messages(bench) == [("notification", "run-1/say/1", "pending")]
    assert stored(bench)[b"half done"] == "text/plain"
    bench.do(begin("two"), permit=permit)


def test_a_run_without_a_session_keeps_the_text(bench: Harness) -> None:
    """It is the node's output and a fact of the trace; no message exists."""
    permit = bench.launch(workflow=SAYS)
    bench.do(begin("say", node_type="notify"), said(), begin("two"), permit=permit)
    assert attempt(bench, "say")["output"] == Blob.json("half done").digest
    assert messages(bench) == []


def test_a_lost_runner_tells_nothing_twice(bench: Harness) -> None:
    """The visit goes on under a new attempt, whose message has the name the lost one would have."""
    permit = bench.launch(workflow=SAYS, session=SESSION)
    bench.do(begin("say", node_type="notify"), permit=permit)
    bench.do(LoseRunner("run-1", 0, counted=True, detail="killed"), permit=permit)
    bench.clock.advance_ms(60_000)
    permit = bench.relaunch()
    bench.do(begin("say", number=2, node_type="notify"), said(number=2), permit=permit)
    (row,) = bench.dump("workflow_messages")
    assert row[0] == ids.message_id("notification", "run-1/say/1", "notice")


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (said(kind="final"), "nodeMismatch"),
        (said(""), "notText"),
        (said({"text": "x"}), "notText"),
        (said(number=2), "attemptMismatch"),
        (end("say", "half done"), "textMissing"),
    ],
)
def test_what_is_no_such_notification_is_refused(
    bench: Harness, command: Notify | FinishAttempt, code: str
) -> None:
    """Another kind, no text, another attempt, or an end without telling: nothing changes."""
    permit = bench.launch(workflow=SAYS, session=SESSION)
    bench.do(begin("say", node_type="notify"), permit=permit)
    answer = bench.answer(command, permit=permit)
    assert (answer.outcome, answer.code) == (Outcome.REJECTED, code)
    assert messages(bench) == []
    assert attempt(bench, "say")["status"] == "running"


def test_a_notification_belongs_to_its_node(bench: Harness) -> None:
    """A compute node gives none, and a failing notification ends like any node."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    key = ids.attempt_id("run-1", "one", 1)
    wrong = Notify("run-1", key, Blob.json("x"), "progress")
    assert bench.answer(wrong, permit=permit).code == "nodeMismatch"
    bench.do(end("one", 1), permit=permit)


def told(node: str, prompt: str, node_type: str = "agent") -> StartAttempt:
    """Return the start of a node with a prompt."""
    key = ids.attempt_id("run-1", node, 1)
    return StartAttempt("run-1", key, node, 1, 1, node_type, 900_000, Blob.text(prompt))


def test_a_prompt_is_kept_with_its_attempt(bench: Harness) -> None:
    """What a model was told stands in the attempt from its start, as text."""
    permit = bench.launch(workflow=definition({"plan": agent()}), session=SESSION)
    bench.do(told("plan", "Plan it."), permit=permit)
    assert attempt(bench, "plan")["prompt"] == Blob.text("Plan it.").digest
    assert stored(bench)[b"Plan it."] == "text/plain"


def test_only_an_agent_is_told(bench: Harness) -> None:
    """A prompt of another node is refused."""
    permit = bench.launch()
    answer = bench.answer(told("one", "Plan it.", "compute"), permit=permit)
    assert answer.code == "nodeMismatch"


ASKS: Final[dict[str, dict[str, Json]]] = {
    "agent": agent(),
    "assistant": speaker(),
    "checkpoint": {"type": "checkpoint"},
}


@pytest.mark.parametrize("node", list(ASKS))
@pytest.mark.parametrize("kind", ["agent", "assistant", "checkpoint", "decision"])
def test_a_node_asks_for_its_own_kind_of_answer(bench: Harness, node: str, kind: str) -> None:
    """Whatever its runner says, a node waits for what its definition asks for."""
    permit = bench.launch(workflow=definition({"ask": ASKS[node]}), session=SESSION)
    node_type = "checkpoint" if node == "checkpoint" else "agent"
    key = ids.attempt_id("run-1", "ask", 1)
    bench.do(StartAttempt("run-1", key, "ask", 1, 1, node_type, 900_000), permit=permit)
    contract = Blob.json({"kind": kind, "nodeId": "ask", "prompt": "?"})
    wait = WaitForInput("run-1", key, kind, contract)  # type: ignore[arg-type] # one of the four
    answer = bench.answer(wait, permit=permit)
    if kind == node:
        assert answer.outcome == Outcome.ACCEPTED
    else:
        assert answer.code == "nodeMismatch"


@pytest.mark.parametrize("node", ["agent", "checkpoint"])
def test_only_an_answer_completes_a_question(bench: Harness, node: str) -> None:
    """A runner cannot make up what a person or a model has to say."""
    permit = bench.launch(workflow=definition({"ask": ASKS[node]}), session=SESSION)
    key = ids.attempt_id("run-1", "ask", 1)
    bench.do(StartAttempt("run-1", key, "ask", 1, 1, node, 900_000), permit=permit)
    assert bench.answer(end("ask", 1), permit=permit).code == "answerMissing"
