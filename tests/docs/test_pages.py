"""What the documentation shows is true: examples, commands, links, generated tables."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from pi_workflows.base import canonical
from pi_workflows.cli.app import app
from tests.docs.pages import ROOT, Block, anchors, blocks, links
from tests.docs.reference import REFERENCE, reference


def test_the_reference_is_what_the_code_says() -> None:
    """`scripts/reference` writes the page anew."""
    assert REFERENCE.read_text(encoding="utf-8") == reference()


@pytest.mark.slow
def test_every_example_workflow_is_valid(tmp_path: Path) -> None:
    """A workflow shown to readers passes the check that they would run."""
    shown = [block for block in blocks("python") if "workflow=" in block.info]
    assert shown
    for block in shown:
        name = block.info.partition("workflow=")[2]
        file = tmp_path / f"{name}_workflow.py"
        file.write_text(block.text, encoding="utf-8")
        question = canonical.encode(
            {
                "operation": "check",
                "projectPath": str(tmp_path),
                "definitionsPath": str(tmp_path / "definitions"),
                "target": str(file),
            }
        )
        answer = subprocess.run(
            [sys.executable, "-m", "pi_workflows.runner", "--mode", "resolve"],
            input=question + b"\n",
            capture_output=True,
            check=True,
        )
        assert b'"problems"' not in answer.stdout, answer.stdout


@pytest.mark.slow
def test_every_other_python_example_passes_the_type_checker(tmp_path: Path) -> None:
    """Code that uses the library has the names and types that it shows."""
    shown = [block for block in blocks("python") if "workflow=" not in block.info]
    assert shown
    for number, block in enumerate(shown):
        file = tmp_path / f"example_{number}.py"
        file.write_text(block.text, encoding="utf-8")
        checked = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", str(file)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout


def commands() -> list[tuple[Block, list[str]]]:
    """Return each command line that the pages show, without its comment."""
    found: list[tuple[Block, list[str]]] = []
    for block in blocks("console"):
        for line in block.text.split("\n"):
            words = shlex.split(line.removeprefix("$ "), comments=True)
            if line.startswith("$ ") and words and words[0].endswith("pi-workflows"):
                found.append((block, words[1:]))
    return found


def test_every_command_that_is_shown_exists() -> None:
    """Each shown command and each of its options is one that the program knows."""
    shown = commands()
    assert len(shown) > 10
    for block, words in shown:
        command: Any = typer.main.get_command(app)
        rest = list(words)
        while rest and rest[0] in getattr(command, "commands", {}):
            command = command.commands[rest.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        is_group = bool(getattr(command, "commands", None))
        assert not is_group or command.invoke_without_command, (block.page, words)
        for word in rest:
            if word.startswith("--"):
                assert word in known, (block.page, words)


def test_every_link_leads_somewhere() -> None:
    """Relative links name files of the repository, anchors name headings."""
    for page, target in links():
        path, _, anchor = target.partition("#")
        assert "://" not in target, (page, target)
        file = (page.parent / path) if path else page
        assert file.exists(), (page, target)
        if anchor:
            assert anchor in anchors(file), (page, target)
