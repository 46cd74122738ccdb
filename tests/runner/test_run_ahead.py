"""Compute nodes run ahead of the server's answers, never too far, and never past what must wait."""

from __future__ import annotations

import select
from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.protocol.proposals import (
    Failure,
    FinishRun,
    Propose,
    StartAttempt,
    WaitForInput,
)
from tests.runner.peer import Peer, launch_of, of_kind

pytestmark = pytest.mark.slow

STEPS = 600
COUNTING = f"""
@compute
DEF step(ctx):
    n = ctx.outputs.get("step", {{"n": 0}})["n"] + 1
    return {{"n": n, "more": n < {STEPS}}}

workflow = define_workflow("counting", input=Input, start="step", max_steps=5000,
    nodes={{"step": step, "end": checkpoint("Done?")}},
    edges=[switch("step", on="$.more", cases={{"true": "step", "false": "end"}})])
"""


def is_silent(peer: Peer, seconds: float = 0.2) -> bool:
    """Say whether the runner sends nothing for a while."""
    return not select.select([peer.channel], [], [], seconds)[0]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_at_most_sixteen_proposals_are_unanswered(
    author: Callable[[str], Path], start: Callable[[], Peer], kind: str
) -> None:
    """Without answers the runner proposes sixteen times and waits; one answer lets one more go."""
    peer = start()
    peer.begin(launch_of(author(COUNTING.replace("DEF", kind)), {}))
    sent = [peer.propose() for _ in range(16)]
    assert [proposal.seq for proposal in sent] == list(range(1, 17))
    assert all(len(proposal.commands) <= 32 for proposal in sent)
    assert is_silent(peer)
    peer.answer(sent[0])
    assert peer.propose().seq == 17
    assert is_silent(peer)


def test_boundaries_collect_while_an_answer_is_awaited(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The first boundary leaves alone; those that follow before its answer share proposals."""
    peer = start()
    peer.begin(launch_of(author(COUNTING.replace("DEF", "def")), {}))
    first, second = peer.propose(), peer.propose()
    assert len(first.commands) == 1
    assert len(second.commands) > 2


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_question_waits_for_every_earlier_answer(
    author: Callable[[str], Path], start: Callable[[], Peer], kind: str
) -> None:
    """Whatever releases the claim is proposed only when nothing else is unanswered."""
    peer = start()
    peer.begin(launch_of(author(COUNTING.replace("DEF", kind)), {}))
    waiting: list[Propose] = []
    while True:
        # Answers come late, so that there is always something unanswered.
        if len(waiting) == 8 or (waiting and is_silent(peer)):
            peer.answer(waiting.pop(0))
            continue
        proposal = peer.propose()
        if of_kind(proposal.commands, WaitForInput):
            break
        waiting.append(proposal)
    assert not waiting
    assert len(proposal.commands) == 1
    peer.answer(proposal)
    assert peer.wait() == 0, peer.printed()
    assert len(of_kind(peer.commands, StartAttempt)) == STEPS + 1


def test_a_lost_claim_ends_the_runner_at_once(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Nothing is proposed after the answer `claimLost`, and the runner exits 0."""
    peer = start()
    peer.begin(launch_of(author(COUNTING.replace("DEF", "def")), {}))
    peer.answer(peer.propose(), "claimLost")
    while (message := peer.next_or_end()) is not None:
        assert isinstance(message, Propose)
        assert message.seq <= 17
    assert peer.wait() == 0, peer.printed()


def test_a_refused_boundary_ends_the_runner(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The runner made the same checks, so a refusal is a fault that the diagnostic output names."""
    peer = start()
    peer.begin(launch_of(author(COUNTING.replace("DEF", "def")), {}))
    detail = Failure(code="routeMismatch", message="step is not the next node.")
    peer.answer(peer.propose(), "rejected", detail=detail)
    assert peer.wait() == 70
    assert "routeMismatch" in peer.printed()


def test_an_answer_out_of_order_ends_the_runner(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Answers come in the order of the proposals; anything else is another protocol."""
    peer = start()
    peer.begin(launch_of(author(COUNTING.replace("DEF", "def")), {}))
    peer.propose()
    peer.answer(peer.propose())
    assert peer.wait() == 70


LARGE = """
@compute
def make(ctx):
    return "x" * ctx.input.n

@compute
def measure(ctx):
    return ctx.outputs["make"]

workflow = define_workflow("large", input=Input, start="make",
    nodes={"make": make, "measure": measure}, edges=[edge("make", "measure")])
"""


@pytest.mark.parametrize("size", [16_382, 16_383, 600_000, 8 * 1024 * 1024 - 2])
def test_large_outputs_travel_before_the_proposal_that_names_them(
    author: Callable[[str], Path], start: Callable[[], Peer], size: int
) -> None:
    """Up to 16 KiB a value stands in its proposal, beyond that it is put in verified parts."""
    peer = start()
    peer.begin(launch_of(author(LARGE), {"n": size}))
    peer.serve()
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == "x" * size
    assert bool(peer.contents) == (size > 16_382)
    assert peer.wait() == 0, peer.printed()


SWELLING = """
@compute
def step(ctx):
    return "x" * (20_000 + ctx.visit)

workflow = define_workflow("swelling", input=Input, start="step", nodes={"step": step},
    edges=[switch("step", on="$result.outcome", cases={"ok": "step", "failed": "step"})])
"""


def test_a_proposal_that_names_content_is_not_held_back(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """What was put is named at once, whatever is unanswered."""
    peer = start()
    peer.begin(launch_of(author(SWELLING), {}))
    sent = [peer.propose() for _ in range(16)]
    assert [len(proposal.commands) for proposal in sent] == [1] + [2] * 15
    # At most the one that waits for room was put and not named.
    assert len(peer.contents) <= 16


def test_the_launch_says_how_far_a_runner_goes_ahead(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """How far it runs ahead is the launch's to say."""
    peer = start()
    peer.begin(launch_of(author(COUNTING.replace("DEF", "def")), {}, ahead_max=2))
    peer.propose()
    peer.propose()
    assert is_silent(peer)
