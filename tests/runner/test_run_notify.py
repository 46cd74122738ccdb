"""Notifications: one command settles the attempt and tells the session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.protocol.proposals import FinishAttempt, FinishRun, Notify, StartAttempt
from tests.runner.peer import Peer, launch_of, of_kind

pytestmark = pytest.mark.slow

WORKFLOW = """
workflow = define_workflow("sample", input=Input, start="first",
    nodes={"first": compute(lambda ctx: "so"), "say": notify(TEXT, kind="progress"),
           "end": compute(lambda ctx: [ctx.outputs["say"], ctx.results["say"].outcome])},
    edges=[edge("first", "say"), edge("say", "end")])
"""


def served(author: Callable[[str], Path], start: Callable[[], Peer], text: str) -> Peer:
    """Run a workflow that notifies."""
    peer = start()
    peer.begin(launch_of(author(WORKFLOW.replace("TEXT", text)), {}, mode="interactive"))
    peer.serve()
    return peer


@pytest.mark.parametrize("mode", ["interactive", "headless"])
def test_a_notification_is_its_attempt_s_settlement(
    author: Callable[[str], Path], start: Callable[[], Peer], mode: str
) -> None:
    """No `finishAttempt` is needed; the text is the output, with a session and without one."""
    text = WORKFLOW.replace("TEXT", "lambda ctx: ctx.outputs['first'] * 10_000")
    peer = start()
    peer.begin(launch_of(author(text), {}, mode=mode))
    peer.serve()
    (notice,) = of_kind(peer.commands, Notify)
    begun = of_kind(peer.commands, StartAttempt)[1]
    assert (notice.attempt_id, notice.kind) == (begun.attempt_id, "progress")
    assert peer.value(notice.text) == "so" * 10_000
    assert begun.attempt_id not in {
        each.attempt_id for each in of_kind(peer.commands, FinishAttempt)
    }
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == ["so" * 10_000, "ok"]


def test_a_notification_is_proposed_alone(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Nothing runs ahead with it: what comes before has an answer, what comes after waits."""
    peer = start()
    text = WORKFLOW.replace("TEXT", "lambda ctx: 'x'")
    peer.begin(launch_of(author(text), {}, mode="interactive"))
    peer.serve()
    (proposal,) = [each for each in peer.proposals if of_kind(each.commands, Notify)]
    assert [command.command for command in proposal.commands] == ["notify"]
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == ["x", "ok"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("lambda ctx: 1", "textInvalid"),
        ("lambda ctx: 'x' * 64_001", "textTooLong"),
    ],
)
def test_what_is_no_text_fails_the_node(
    author: Callable[[str], Path], start: Callable[[], Peer], text: str, code: str
) -> None:
    """The session is told nothing, and the failure follows its route."""
    peer = served(author, start, text)
    assert not of_kind(peer.commands, Notify)
    error = of_kind(peer.commands, FinishAttempt)[-1].error
    assert error is not None
    assert error.code == code
    assert of_kind(peer.commands, FinishRun)[0].outcome == "failed"


FINAL = """
workflow = define_workflow("sample", input=Input, start="say",
    nodes={"say": notify(lambda ctx: "done", kind="final")})
"""


def test_a_run_may_end_with_a_notification(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Its text is then the run's output."""
    peer = start()
    peer.begin(launch_of(author(FINAL), {}))
    peer.serve()
    assert [command.command for command in peer.commands] == ["startAttempt", "notify", "finishRun"]
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == "done"
