"""The shipped workflows as their page shows them, executed."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.installation import Installation
from tests.cli.terminal import terminal
from tests.cli.test_deciding import operator, prove
from tests.docs.pages import ROOT, blocks

pytestmark = pytest.mark.slow
__all__ = ["operator"]


def shown(name: str) -> list[list[str]]:
    """Return the command lines of the page that run a workflow."""
    lines = [
        line.removeprefix("$ ")
        for block in blocks("console")
        if block.page == ROOT / "docs" / "builtins.md"
        for line in block.text.splitlines()
        if f" run {name} " in line
    ]
    assert lines
    return [shlex.split(line)[1:] for line in lines]


def git(project: Path, *words: str) -> str:
    """Run git in a project."""
    done = subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", str(project), *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.fixture
def clone(operator: Installation) -> Path:
    """Make the project a clean clone."""
    project = operator.project
    if not (project / ".git").exists():
        git(project, "init", "--quiet")
    (project / "README.md").write_text("one\n")
    git(project, "add", "-A")
    git(project, "commit", "--quiet", "--allow-empty", "-m", "begin")
    return project


def test_what_the_page_watches_holds(operator: Installation, clone: Path) -> None:
    """In a clean clone each watch ends at its first check."""
    assert clone == operator.project
    for words in shown("monitor"):
        done = operator.cli(*words, "--json")
        assert done.code == 0, done.out + done.err
        view = done.document["view"]
        assert isinstance(view, dict)
        state = view["state"]
        assert isinstance(state, dict)
        output = state["finalOutput"]
        assert isinstance(output, dict)
        assert (output["met"], output["checks"]) == (True, 1)


def test_what_the_page_changes_is_what_a_person_approved(
    operator: Installation, clone: Path
) -> None:
    """The whole proposal is shown, and staged once it is approved."""
    (words,) = shown("approved-change")
    (clone / "README.md").write_text("one\ntwo\n")
    done = operator.cli(*words, "--run-id", "change-1")
    assert done.code == 10, done.err
    assert "+two" in done.err
    assert "git apply --cached -" in done.err
    assert git(clone, "diff", "--cached") == ""
    with terminal(operator, "answer", "change-1", "apply") as answering:
        prove(answering)
        assert answering.end() == 0
    assert operator.cli("watch", "change-1").code == 0
    assert "+two" in git(clone, "diff", "--cached")
    assert "verified: true" in operator.cli("show", "change-1").out
