"""The workflows that the package ships, without any process."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pi_workflows import Context, DecisionRequest
from pi_workflows.authoring.builtins import BUILTINS
from pi_workflows.authoring.commands import ShellResult
from pi_workflows.authoring.context import CancelSignal, NodeResult
from pi_workflows.authoring.discovery import directories, find, included, listed
from pi_workflows.authoring.loading import load
from pi_workflows.authoring.updates import PublishedUpdate
from pi_workflows.base.canonical import Json
from pi_workflows.builtins import approved_change_workflow as change
from pi_workflows.builtins import monitor_workflow as monitor
from pi_workflows.definition.presentation import presentation_of

NAMES: Final = ("approved-change", "monitor")


class Kept:
    """Keeps what is published."""

    def __init__(self) -> None:
        self.data: list[Json] = []

    async def publish(self, update: PublishedUpdate) -> None:
        """Keep an update."""
        self.publish_from_thread(update)

    def publish_from_thread(self, update: PublishedUpdate) -> None:
        """Keep an update."""
        self.data.append(update.data)


def watching(
    asked: Mapping[str, Any], outputs: Mapping[str, Any], kept: Kept, ended: NodeResult
) -> Context[monitor.Watch]:
    """Return the context in which a check is judged."""
    return Context(
        input=monitor.Watch.model_validate({"command": ["look"], **asked}),
        outputs=outputs,
        results={"check": ended},
        run_id="run-1",
        project_path="/project",
        node_path="judge",
        visit=1,
        attempt_number=1,
        cancel=CancelSignal(),
        nodes=monitor.workflow.nodes,
        publisher=kept,
    )


def shown(exit_code: int | None = 1, stdout: str = "") -> dict[str, Json]:
    """Return what a command's check stores."""
    result = ShellResult(
        command=("look",), cwd="/", exit_code=exit_code, duration_ms=1, stdout=stdout, stderr=""
    )
    stored: dict[str, Json] = result.model_dump(mode="json")
    return stored


def judged(asked: Mapping[str, Any], *checks: dict[str, Json], since_ms: int | None = None) -> str:
    """Return what the last of several checks means."""
    outputs: dict[str, Any] = {
        "begin": {"since_ms": monitor.now_ms() if since_ms is None else since_ms}
    }
    kept = Kept()
    for check in checks:
        outputs["check"] = check
        found = monitor.judge.function(watching(asked, outputs, kept, NodeResult("ok")))
        assert isinstance(found, monitor.Judgement)
        outputs["judge"] = found.model_dump(mode="json")
    assert len(kept.data) == len(checks)
    return str(outputs["judge"]["next"])


def test_they_are_listed_found_and_shadowed(tmp_path: Path) -> None:
    """Each answers to its name and to its reference; a project's own file takes only the name."""
    items = {item.name: item for item in listed(directories(tmp_path, None))}
    assert tuple(sorted(items)) == NAMES
    assert all(item.source == "builtin" and item.summary for item in items.values())
    own = tmp_path / ".pi" / "workflows" / "monitor_workflow.py"
    own.parent.mkdir(parents=True)
    own.write_text("")
    assert find("monitor", tmp_path, None) == own
    shipped = BUILTINS / "monitor_workflow.py"
    assert find("builtin:monitor", tmp_path, None) == shipped
    assert included("builtin:monitor", tmp_path, tmp_path, None) == shipped


@pytest.mark.parametrize("name", NAMES)
def test_their_revision_is_the_digest_of_the_file(name: str) -> None:
    """Whoever has the file can say which one a run had."""
    file = BUILTINS / f"{name.replace('-', '_')}_workflow.py"
    loaded = load(file)
    loaded.close()
    assert loaded.workflow.name == name
    source = loaded.sources[0].source
    assert (source.type, source.ref) == ("builtin", name)
    assert source.revision == hashlib.sha256(file.read_bytes()).hexdigest()
    assert sorted(loaded.workflow.exits)


@pytest.mark.parametrize(
    ("until", "checks", "verdict"),
    [
        ({}, [shown(1), shown(0)], "met"),
        ({}, [shown(None)], "same"),
        ({"exit_code": 7}, [shown(0), shown(7)], "met"),
        ({"output_matches": "re.dy"}, [shown(1, "not ready yet")], "met"),
        ({"output_matches": "^ready"}, [shown(0, "not ready yet")], "same"),
        ({"output_matches": "ready", "exit_code": 0}, [shown(1, "ready")], "same"),
        ({"changed": True}, [shown(1, "a")], "same"),
        ({"changed": True}, [shown(1, "a"), shown(1, "a")], "same"),
        ({"changed": True}, [shown(1, "a"), shown(1, "b")], "met"),
        ({"exit_code": 9}, [shown(1, "a"), shown(1, "b")], "changed"),
        ({"exit_code": 9}, [shown(1, "a"), shown(1, "b"), shown(1, "b")], "same"),
    ],
)
def test_a_check_is_judged(
    until: Mapping[str, Json], checks: list[dict[str, Json]], verdict: str
) -> None:
    """All that is given must hold of one check; nothing given means exit code 0."""
    assert judged({"until": until}, *checks) == verdict


def test_a_watch_ends_at_its_limits() -> None:
    """Checks and time are bounded; what holds in the last check still counts."""
    assert judged({"checks_max": 2}, shown(), shown()) == "over"
    assert judged({"checks_max": 2}, shown(), shown(0)) == "met"
    assert judged({"deadline_seconds": 5}, shown(), since_ms=0) == "over"
    assert judged({"deadline_seconds": 5}, shown(0), since_ms=0) == "met"
    assert judged({"report_changes": False}, shown(), shown(2)) == "same"


def test_a_wait_ends_with_the_deadline() -> None:
    """The last check comes when the deadline does."""
    asked = {"deadline_seconds": 30, "interval_seconds": 3_600}
    outputs = {"begin": {"since_ms": monitor.now_ms()}, "check": shown()}
    found = monitor.judge.function(watching(asked, outputs, Kept(), NodeResult("ok")))
    assert isinstance(found, monitor.Judgement)
    assert 25_000 < found.wait_ms <= 30_000


def test_a_check_without_a_result_is_a_mistake_only_at_first() -> None:
    """A command that cannot begin fails the run; later, or cut short, it is one more result."""
    since: dict[str, Any] = {"begin": {"since_ms": monitor.now_ms()}}
    failed = NodeResult("failed", "look: no such file or directory")
    with pytest.raises(ValueError, match="no such file"):
        monitor.judge.function(watching({}, since, Kept(), failed))
    slow = monitor.judge.function(watching({}, since, Kept(), NodeResult("timed_out", "late")))
    assert isinstance(slow, monitor.Judgement)
    assert (slow.next, slow.seen.error) == ("same", "timed_out: late")
    later = {**since, "judge": slow.model_dump(mode="json")}
    gone = monitor.judge.function(watching({}, later, Kept(), failed))
    assert isinstance(gone, monitor.Judgement)
    assert gone.next == "changed"


def test_a_pattern_that_is_none_is_refused() -> None:
    """Before anything is checked."""
    with pytest.raises(ValidationError, match="no regular expression"):
        monitor.Until(output_matches="(")


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200), st.integers(1, 400))
def test_a_proposal_is_shown_whole(text: str, times: int) -> None:
    """Its parts are it, and each can be shown; what cannot be shown whole is refused."""
    whole = text * times
    try:
        proposal = change.proposed(
            ShellResult(
                command=("x",), cwd="/", exit_code=0, duration_ms=1, stdout=whole, stderr=""
            )
        )
    except ValueError:
        assert change.utf16_units(whole) > change.PROPOSAL_UNITS_MAX
        return
    parts = change.parts(proposal.text)
    assert "".join(parts) == whole
    assert all(change.utf16_units(part) <= change.PART_UNITS_MAX for part in parts)
    assert len(parts) <= 16


def test_a_proposal_of_the_greatest_size_fits_a_presentation() -> None:
    """Beside the command and its places."""
    units = change.PROPOSAL_UNITS_MAX
    for text in ("x" * units, "y\n" * (units // 2), "\U0001f600" * (units // 2)):
        builder = monitor_presentation(text)
        assert len(presentation_of(builder).blocks) < 32


def monitor_presentation(text: str) -> object:
    """Return what a person is shown of a proposal."""
    asked = change.Change(title="t" * 200, propose=["p"], apply=["a"] * 50, verify=["v"] * 50)
    ctx = Context(
        input=asked,
        outputs={"propose": {"text": text, "empty": False}},
        results={},
        run_id="run-1",
        project_path="/project",
        node_path="approve",
        visit=1,
        attempt_number=1,
        cancel=CancelSignal(),
        nodes=change.workflow.nodes,
        publisher=Kept(),
    )
    question = change.approve.function(ctx)
    assert isinstance(question, DecisionRequest)
    return question.presentation
