"""Steps of models: told once, within limits, and only where a session can take them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.protocol.content import BlobRef, JsonRef
from pi_workflows.protocol.proposals import (
    FinishAttempt,
    FinishRun,
    StartAttempt,
    WaitForInput,
)
from pi_workflows.protocol.runner import OpenVisit, Resume
from tests.runner.peer import Peer, launch_of, of_kind

pytestmark = pytest.mark.slow

WORKFLOW = """
class Review(BaseModel):
    route: Literal["clean", "issues"]

workflow = define_workflow("sample", input=Input, start="first", max_steps=5,
    nodes={"first": compute(lambda ctx: "so"),
           "ask": NODE,
           "end": compute(lambda ctx: ctx.outputs["ask"])},
    edges=[edge("first", "ask"), edge("ask", "end")])
"""
TOLD = "prompt=lambda ctx: f\"Look at {ctx.outputs['first']}, {ctx.visit}\""


def served(
    author: Callable[[str], Path], start: Callable[[], Peer], node: str, mode: str = "interactive"
) -> Peer:
    """Run a workflow with the node after a first one, as far as it goes."""
    peer = start()
    peer.begin(launch_of(author(WORKFLOW.replace("NODE", node)), {}, mode=mode))
    peer.serve()
    return peer


def asked(peer: Peer) -> tuple[WaitForInput, dict[str, Json]]:
    """Return the run's one question, and its contract."""
    (wait,) = of_kind(peer.commands, WaitForInput)
    contract = peer.value(wait.contract)
    assert isinstance(contract, dict)
    return wait, contract


def failure(peer: Peer) -> tuple[str, str]:
    """Return why the second node failed; nothing was asked."""
    assert not of_kind(peer.commands, WaitForInput)
    finish = of_kind(peer.commands, FinishAttempt)[-1]
    assert finish.outcome == "failed"
    assert finish.error is not None
    assert of_kind(peer.commands, StartAttempt)[-1].prompt is None
    return finish.error.code, finish.error.message


def test_a_model_is_told_and_the_runner_leaves(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The attempt starts with its prompt; the contract repeats it with what an answer must be."""
    peer = served(author, start, f'agent({TOLD}, output=Review, allowed_tools=["read"])')
    begun = of_kind(peer.commands, StartAttempt)[-1]
    assert peer.value(begun.prompt) == "Look at so, 1"
    assert begun.node_type == "agent"
    wait, contract = asked(peer)
    assert (wait.kind, wait.attempt_id) == ("agent", begun.attempt_id)
    schema = contract.pop("answerSchema")
    assert isinstance(schema, dict)
    assert schema["required"] == ["route"]
    assert contract == {
        "schema": "pi-workflows.interaction-contract.v1",
        "kind": "agent",
        "nodeId": "ask",
        "prompt": "Look at so, 1",
        "allowedTools": ["read"],
    }
    assert peer.commands[-1] == wait
    assert peer.wait() == 0, peer.printed()


@pytest.mark.parametrize(
    ("node", "kind", "members"),
    [
        (
            'agent(prompt="?", output=assistant_message(max_chars=9))',
            "assistant",
            {"maxChars": 9},
        ),
        (
            'agent(prompt="?", output="a number", validate=int)',
            "agent",
            {"expectedOutput": "a number"},
        ),
        (
            'decision(choices=("y", "n"), question="?")',
            "agent",
            {
                "expectedOutput": 'A JSON object whose "route" is one of: "y", "n"',
                "choices": ["y", "n"],
                "choiceField": "route",
            },
        ),
    ],
)
def test_a_contract_says_what_is_expected(
    author: Callable[[str], Path],
    start: Callable[[], Peer],
    node: str,
    kind: str,
    members: dict[str, Json],
) -> None:
    """Text, description or choices: the contract of each form."""
    wait, contract = asked(served(author, start, node))
    assert wait.kind == kind
    assert contract == {
        "schema": "pi-workflows.interaction-contract.v1",
        "kind": kind,
        "nodeId": "ask",
        "prompt": "?",
        **members,
    }


@pytest.mark.parametrize(
    ("node", "code", "words"),
    [
        ("agent(prompt=lambda ctx: 1, output='x')", "textInvalid", "the prompt is a int"),
        ("agent(prompt=lambda ctx: 'x' * 96_001, output='x')", "textTooLong", "96,001 characters"),
        (
            "agent(prompt=lambda ctx: 'xyz', output='x', prompt_chars_max=2)",
            "textTooLong",
            "at most 2",
        ),
        ("agent(prompt=lambda ctx: '\\ud800', output='x')", "loneSurrogate", "prompt"),
    ],
)
def test_a_prompt_that_cannot_be_given_fails_the_node(
    author: Callable[[str], Path], start: Callable[[], Peer], node: str, code: str, words: str
) -> None:
    """Nothing is asked and no message could exist: the attempt begins without a prompt."""
    found, message = failure(served(author, start, node))
    assert found == code
    assert words in message


def test_a_prompt_may_be_longer_where_its_author_says_so(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A raised limit holds, up to a million characters; a long prompt is put, not sent inline."""
    node = "agent(prompt=lambda ctx: 'é' * 1_000_000, output='x', prompt_chars_max=1_000_000)"
    peer = served(author, start, node)
    begun = of_kind(peer.commands, StartAttempt)[-1]
    assert isinstance(begun.prompt, BlobRef)
    assert peer.value(begun.prompt) == "é" * 1_000_000
    assert asked(peer)[1]["prompt"] == "é" * 1_000_000


def test_a_run_without_a_session_fails_at_its_agent(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """No model could take the step: the failure says so, and its function is not called."""
    node = "agent(prompt=lambda ctx: os._exit(1), output='x')"
    code, message = failure(served(author, start, node, "headless"))
    assert code == "agentExecutorMissing"
    assert "headless" in message


HANGING = """
import pi_workflows.runner.engine as engine
import pi_workflows.runner.prompts as prompts
engine.DEFINITION_CALLBACK_MS = prompts.DEFINITION_CALLBACK_MS = 50

def hang(ctx):
    return trio.sleep_forever()

SHORT = timedelta(milliseconds=50)
workflow = define_workflow("sample", input=Input, start="ask",
    nodes={"ask": agent(prompt=hang, output="x"), "budget": compute(hang, timeout=hang),
           "callback": compute(hang, timeout=SHORT),
           "question": checkpoint("?", run=hang, timeout=SHORT),
           "say": notify(hang, kind="final", timeout=SHORT),
           "end": compute(lambda ctx: {name: each.outcome for name, each in ctx.results.items()})},
    edges=[switch(a, on="$result.outcome", cases={"failed": b, "timed_out": b}) for a, b in
           (("ask", "budget"), ("budget", "callback"), ("callback", "question"),
            ("question", "say"), ("say", "end"))])
"""


def test_case_26_a_callback_that_hangs_ends_at_its_limit(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The engine goes on at the limit of each: the node ends, and its route is followed."""
    peer = start()
    peer.begin(launch_of(author(HANGING), {}, mode="interactive"))
    peer.serve()
    (end,) = of_kind(peer.commands, FinishRun)
    assert (end.outcome, peer.value(end.output)) == (
        "completed",
        {
            "ask": "failed",
            "budget": "failed",
            "callback": "timed_out",
            "question": "timed_out",
            "say": "timed_out",
        },
    )


def resumed(accepted: Json) -> Resume:
    """Return where a run stands whose model has answered."""
    return Resume(
        run_revision=7,
        step_total=1,
        visits={"first": 1, "ask": 1},
        attempts={"first": 1, "ask": 1},
        outputs={"first": JsonRef(value="so")},
        results={},
        open=OpenVisit(
            attempt_id="attempt-of-the-step",
            node_path="ask",
            visit=1,
            tries=0,
            request="request-1",
            accepted=JsonRef(value=accepted),
        ),
    )


def test_an_accepted_output_ends_the_waiting_attempt_under_its_id(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """What was accepted is the node's output, typed for the nodes that follow."""
    text = WORKFLOW.replace("NODE", 'agent(prompt="?", output=Review)')
    peer = start()
    peer.begin(launch_of(author(text), {}, mode="interactive", resume=resumed({"route": "clean"})))
    peer.serve()
    finish = of_kind(peer.commands, FinishAttempt)[0]
    assert (finish.attempt_id, finish.outcome) == ("attempt-of-the-step", "ok")
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == {"route": "clean"}
