"""Checkpoints: asked once, then the run waits without a runner for the same attempt's answer."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.protocol.content import BlobRef, JsonRef, Ref
from pi_workflows.protocol.proposals import (
    FinishAttempt,
    FinishRun,
    StartAttempt,
    WaitForInput,
)
from pi_workflows.protocol.runner import OpenVisit, Resume
from tests.runner.peer import Peer, launch_of, of_kind

pytestmark = pytest.mark.slow

ASKING = """
class Answer(BaseModel):
    ok: bool
    note: str = ""

gate = checkpoint("Go on?", OPTIONS)

workflow = define_workflow("asking", input=Input, start="first",
    nodes={"first": compute(lambda ctx: 1), "gate": gate,
           "end": compute(lambda ctx: [ctx.outputs["gate"], ctx.output_of(gate) is not None])},
    edges=[edge("first", "gate"), edge("gate", "end")])
"""


def asking(options: str = "") -> str:
    """Return a workflow with a checkpoint after its first node."""
    return ASKING.replace("OPTIONS", options)


def contract(peer: Peer) -> dict[str, Json]:
    """Return what the run's one request shows."""
    (wait,) = of_kind(peer.commands, WaitForInput)
    value = peer.value(wait.contract)
    assert isinstance(value, dict)
    return value


def test_a_checkpoint_asks_and_the_runner_leaves(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The question is the last proposal; after its answer the runner exits 0."""
    peer = start()
    peer.begin(launch_of(author(asking()), {}))
    peer.serve()
    last = peer.commands[-1]
    assert isinstance(last, WaitForInput)
    assert last.attempt_id == of_kind(peer.commands, StartAttempt)[-1].attempt_id
    assert contract(peer) == {
        "schema": "pi-workflows.interaction-contract.v1",
        "kind": "checkpoint",
        "nodeId": "gate",
        "summary": "Go on?",
    }
    assert peer.wait() == 0, peer.printed()


def test_a_model_shows_its_schema_and_a_function_its_content(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A person sees what the function built and what an answer must look like."""
    options = "output=Answer, run=lambda ctx: {'first': ctx.outputs['first']}"
    peer = start()
    peer.begin(launch_of(author(asking(options)), {}))
    peer.serve()
    shown = contract(peer)
    assert shown["content"] == {"first": 1}
    schema = shown["answerSchema"]
    assert isinstance(schema, dict)
    assert schema["required"] == ["ok"]


def test_a_large_question_is_put(author: Callable[[str], Path], start: Callable[[], Peer]) -> None:
    """What a person is shown may be as large as any value."""
    peer = start()
    peer.begin(launch_of(author(asking("run=lambda ctx: 'x' * 100_000")), {}))
    peer.serve()
    assert contract(peer)["content"] == "x" * 100_000
    assert peer.contents


@pytest.mark.parametrize("body", ["1 / 0", "{1}", "'x' * 9_000_000"])
def test_a_question_that_cannot_be_built_fails_the_node(
    author: Callable[[str], Path], start: Callable[[], Peer], body: str
) -> None:
    """Nothing is asked; the failure follows its route."""
    peer = start()
    peer.begin(launch_of(author(asking(f"run=lambda ctx: {body}")), {}))
    peer.serve()
    assert not of_kind(peer.commands, WaitForInput)
    assert of_kind(peer.commands, FinishAttempt)[-1].outcome == "failed"
    assert of_kind(peer.commands, FinishRun)[0].outcome == "failed"


ATTEMPT_ID = "attempt-of-the-question"


def answered(accepted: Ref) -> Resume:
    """Return where a run stands whose checkpoint was answered."""
    return Resume(
        run_revision=7,
        step_total=1,
        visits={"first": 1, "gate": 1},
        attempts={"first": 1, "gate": 1},
        outputs={"first": JsonRef(value=1)},
        results={},
        open=OpenVisit(
            attempt_id=ATTEMPT_ID,
            node_path="gate",
            visit=1,
            tries=0,
            request="request-1",
            accepted=accepted,
        ),
    )


def test_an_accepted_answer_ends_the_waiting_attempt_under_its_id(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """It finishes with the answer as its output, together with the next node's start."""
    peer = start()
    resume = answered(JsonRef(value={"ok": True, "note": "fine"}))
    peer.begin(launch_of(author(asking("output=Answer")), {}, resume=resume))
    peer.serve()
    assert [command.command for command in peer.proposals[0].commands] == [
        "finishAttempt",
        "startAttempt",
    ]
    finish = of_kind(peer.commands, FinishAttempt)[0]
    assert (finish.attempt_id, finish.outcome, finish.elapsed_ns) == (ATTEMPT_ID, "ok", 0)
    assert peer.value(finish.output) == {"ok": True, "note": "fine"}
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == [{"ok": True, "note": "fine"}, True]


def test_a_large_answer_is_fetched_by_its_digest(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """What the launch only names is asked for in verified parts, and named again."""
    blob = Blob.json("y" * 1_200_000)
    peer = start()
    peer.contents[blob.hex] = blob
    peer.begin(launch_of(author(asking()), {}, resume=answered(BlobRef.of(blob))))
    peer.serve()
    finish = of_kind(peer.commands, FinishAttempt)[0]
    assert isinstance(finish.output, BlobRef)
    assert finish.output.sha256 == blob.hex
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == ["y" * 1_200_000, True]


def test_a_value_that_the_server_does_not_have_ends_the_runner(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Without what the launch names there is nothing to go on from."""
    peer = start()
    resume = answered(BlobRef.of(Blob.json("z" * 20_000)))
    peer.begin(launch_of(author(asking()), {}, resume=resume))
    peer.serve()
    assert peer.wait() == 70
    assert not peer.commands


FINAL = """
workflow = define_workflow("final", input=Input, start="gate", nodes={"gate": checkpoint("?")})
"""


def test_a_final_checkpoint_completes_the_run_with_its_answer(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The answer is the run's output."""
    resume = answered(JsonRef(value="yes")).model_copy(update={"step_total": 0})
    peer = start()
    peer.begin(launch_of(author(FINAL), {}, resume=resume))
    peer.serve()
    assert [command.command for command in peer.commands] == ["finishAttempt", "finishRun"]
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == "yes"
    assert len(peer.proposals) == 1


def test_a_server_that_closes_after_the_last_answer_is_not_lost(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The answer that ends the runner's work comes before the end of the stream."""
    peer = start()
    peer.begin(launch_of(author(asking()), {}))
    while not of_kind(peer.commands, WaitForInput):
        proposal = peer.propose()
        if not of_kind(proposal.commands, WaitForInput):
            peer.accept(proposal)
    os.kill(peer.pid, signal.SIGSTOP)
    peer.accept(peer.proposals[-1])
    peer.channel.shutdown(socket.SHUT_WR)
    os.kill(peer.pid, signal.SIGCONT)
    assert peer.wait() == 0, peer.printed()
