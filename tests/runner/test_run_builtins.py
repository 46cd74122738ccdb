"""The workflows that the package ships, executed: what they ask for, wait for and leave behind."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pi_workflows.authoring.builtins import BUILTINS
from pi_workflows.base.canonical import Json
from pi_workflows.protocol.content import JsonRef, Ref
from pi_workflows.protocol.proposals import (
    BeginEffect,
    FinishAttempt,
    FinishRun,
    Requeue,
    ReserveEffect,
    StartAttempt,
    Update,
    WaitForInput,
)
from pi_workflows.protocol.runner import Last, Launch, OpenVisit, Resume
from tests.runner.peer import Peer, launch_of, of_kind

pytestmark = pytest.mark.slow

MONITOR = BUILTINS / "monitor_workflow.py"
CHANGE = BUILTINS / "approved_change_workflow.py"


def launch(path: Path, asked: Json, project: Path, resume: Resume | None = None) -> Launch:
    """Return the launch of a built-in in a project."""
    return launch_of(path, asked, resume=resume).model_copy(update={"project_path": str(project)})


def done(
    peer: Peer, *, last: str | None = None, left: OpenVisit | None = None, visits: int = 1
) -> Resume:
    """Return the place where a run stands after what a peer accepted.

    Args:
        peer: The one before.
        last: The node that settled last, unless a visit is open.
        left: The open visit.
        visits: How often each node was entered.
    """
    attempts = {each.attempt_id: each.node_path for each in of_kind(peer.commands, StartAttempt)}
    outputs: dict[str, Ref] = {
        attempts[each.attempt_id]: JsonRef(value=peer.value(each.output))
        for each in of_kind(peer.commands, FinishAttempt)
        if each.output is not None
    }
    return Resume.model_validate(
        {
            "run_revision": 9,
            "step_total": len(outputs),
            "visits": dict.fromkeys(attempts.values(), visits),
            "attempts": dict.fromkeys(attempts.values(), visits),
            "outputs": outputs,
            "results": {path: {"outcome": "ok"} for path in outputs},
            "last": None
            if last is None
            else Last(node_path=last, visit=visits, tries=1, outcome="ok"),
            "open": left,
        },
        by_name=True,
    )


def final(peer: Peer) -> Mapping[str, Json]:
    """Return the output of a run that completed."""
    (end,) = of_kind(peer.commands, FinishRun)
    assert end.outcome == "completed", end
    value = peer.value(end.output)
    assert isinstance(value, dict)
    return value


def test_a_monitor_leaves_its_runner_between_two_checks(
    start: Callable[[], Peer], tmp_path: Path
) -> None:
    """It says what it saw, goes back to the queue for the interval, and ends when it holds."""
    asked: Json = {"command": ["cat", "state"], "until": {"output_matches": "up"}}
    (tmp_path / "state").write_text("down\n")
    peer = start()
    peer.begin(launch(MONITOR, asked, tmp_path))
    commands = peer.serve()
    assert isinstance(commands[-1], Requeue)
    assert commands[-1].delay_ms == 60_000
    assert peer.wait() == 0
    (update,) = of_kind(commands, Update)
    assert isinstance(update.data, dict)
    assert update.data["status"] == "waiting"
    assert update.data["label"] == "exit code 0: down; the condition does not hold yet"

    (tmp_path / "state").write_text("up\n")
    again = start()
    again.begin(launch(MONITOR, asked, tmp_path, done(peer, last="rest")))
    again.serve()
    first = of_kind(again.commands, StartAttempt)[0]
    assert (first.node_path, first.visit) == ("check", 2)
    report = final(again)
    assert report.pop("seconds", None) is not None  # type: ignore[attr-defined]
    assert report == {
        "met": True,
        "why": "the condition holds",
        "checks": 2,
        "exit_code": 0,
        "output": "up\n",
    }


def test_a_change_is_told_before_the_run_waits(start: Callable[[], Peer], tmp_path: Path) -> None:
    """Without a session the text is the output of the step; the wait is the same."""
    asked: Json = {"command": ["cat", "state"], "until": {"output_matches": "up"}}
    (tmp_path / "state").write_text("down\n")
    peer = start()
    peer.begin(launch(MONITOR, asked, tmp_path))
    peer.serve()
    (tmp_path / "state").write_text("starting\n")
    again = start()
    again.begin(launch(MONITOR, asked, tmp_path, done(peer, last="rest")))
    commands = again.serve()
    entered = [each.node_path for each in of_kind(commands, StartAttempt)]
    assert entered == ["check", "judge", "tell", "rest"]
    assert isinstance(commands[-1], Requeue)


def test_a_command_that_cannot_begin_fails_the_monitor(
    start: Callable[[], Peer], tmp_path: Path
) -> None:
    """A mistake in the input is no state to wait for."""
    peer = start()
    peer.begin(launch(MONITOR, {"command": ["no-such-program"]}, tmp_path))
    peer.serve()
    (end,) = of_kind(peer.commands, FinishRun)
    assert end.outcome == "failed"
    assert end.error is not None
    assert "no-such-program" in end.error.message


CHANGED: Json = {
    "title": "Write the answer",
    "propose": ["sh", "-c", 'printf "%s" "42 $CHANGE_REVISION"'],
    "apply": ["sh", "-c", "cat > answer"],
    "verify": ["test", "-s", "answer"],
}


def decided(peer: Peer, choice: Json) -> Resume:
    """Return the place of a run whose decision was answered."""
    (wait,) = of_kind(peer.commands, WaitForInput)
    answered = OpenVisit(
        attempt_id=wait.attempt_id,
        node_path="approve",
        visit=1,
        tries=0,
        request="request-1",
        accepted=JsonRef(value=choice),
    )
    return done(peer, left=answered)


def asked_about(peer: Peer) -> dict[str, Json]:
    """Return the decision that a person is shown."""
    (wait,) = of_kind(peer.commands, WaitForInput)
    contract = peer.value(wait.contract)
    assert isinstance(contract, dict)
    decision = contract["decision"]
    assert isinstance(decision, dict)
    return decision


def test_what_is_approved_is_what_is_applied(start: Callable[[], Peer], tmp_path: Path) -> None:
    """The subject is the request of the command, down to the bytes that it reads."""
    peer = start()
    peer.begin(launch(CHANGE, CHANGED, tmp_path))
    peer.serve()
    subject = asked_about(peer)["subject"]
    assert subject == {
        "command": ["sh", "-c", "cat > answer"],
        "cwd": str(tmp_path),
        "stdinSha256": hashlib.sha256(b"42 ").hexdigest(),
    }
    assert not (tmp_path / "answer").exists()
    again = start()
    again.begin(launch(CHANGE, CHANGED, tmp_path, decided(peer, {"choice": "apply"})))
    again.serve()
    reserved = [again.value(each.request) for each in of_kind(again.commands, ReserveEffect)]
    assert reserved[0] == subject
    assert (tmp_path / "answer").read_text() == "42 "
    report = final(again)
    assert (report["applied"], report["verified"]) == (True, True)


def test_a_person_may_decline_or_want_something_else(
    start: Callable[[], Peer], tmp_path: Path
) -> None:
    """Nothing is applied; what is wanted reaches the next proposal."""
    peer = start()
    peer.begin(launch(CHANGE, CHANGED, tmp_path))
    peer.serve()
    left = start()
    left.begin(launch(CHANGE, CHANGED, tmp_path, decided(peer, {"choice": "decline"})))
    left.serve()
    assert final(left)["applied"] is False
    wanted: Json = {"choice": "revise", "input": {"changes": "please"}}
    again = start()
    again.begin(launch(CHANGE, CHANGED, tmp_path, decided(peer, wanted)))
    again.serve()
    subject = asked_about(again)["subject"]
    assert isinstance(subject, dict)
    assert subject["stdinSha256"] == hashlib.sha256(b"42 please").hexdigest()
    assert not (tmp_path / "answer").exists()


@pytest.mark.parametrize(
    ("part", "command", "expected"),
    [
        ("propose", ["true"], (False, False)),
        ("apply", ["sh", "-c", "echo no >&2; exit 3"], (False, False)),
        ("verify", ["false"], (True, False)),
    ],
)
def test_every_way_a_change_may_end_is_told(
    start: Callable[[], Peer], tmp_path: Path, part: str, command: Json, expected: tuple[bool, bool]
) -> None:
    """Nothing proposed, not applied, not verified: each is an exit with its report."""
    assert isinstance(CHANGED, dict)
    asked: Json = {**CHANGED, part: command}
    peer = start()
    peer.begin(launch(CHANGE, asked, tmp_path))
    peer.serve()
    if part != "propose":
        again = start()
        again.begin(launch(CHANGE, asked, tmp_path, decided(peer, {"choice": "apply"})))
        again.serve()
        peer = again
    report = final(peer)
    assert (report["applied"], report["verified"]) == expected
    if part == "apply":
        assert (report["exit_code"], report["output"]) == (3, "no\n")
    assert len(of_kind(peer.commands, BeginEffect)) == {"propose": 1, "apply": 1, "verify": 2}[part]
