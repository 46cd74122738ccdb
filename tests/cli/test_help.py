"""Every command explains itself, with an example that is a command line of ours."""

from __future__ import annotations

import re
import shlex

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base.version import package_version
from tests.cli.installation import Installation
from tests.cli.tree import paths

COLUMNS = {"COLUMNS": "88"}
EXAMPLE = re.compile(r"^    pi-workflows (?P<line>.+)$", re.MULTILINE)
GROUPS = {
    (),
    ("operator",),
    ("server",),
    ("state",),
    ("audit",),
    ("settings",),
    ("follow-up",),
}


def text_of(path: tuple[str, ...], fresh: Installation) -> str:
    """Return the help of a command."""
    fresh.environment.update(COLUMNS)
    done = fresh.cli(*path, "--help")
    assert (done.code, done.err) == (0, "")
    return done.out


@pytest.mark.parametrize("path", paths(), ids=" ".join)
def test_help(path: tuple[str, ...], fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """The help of each command is what is written down."""
    assert text_of(path, fresh) == snapshot


@pytest.mark.parametrize("path", [each for each in paths() if each not in GROUPS], ids=" ".join)
def test_every_command_has_an_example(path: tuple[str, ...], fresh: Installation) -> None:
    """Each command shows how it is typed: its own name, and options that it has."""
    text = text_of(path, fresh)
    options = set(re.findall(r"^  (--[a-z-]+)", text, re.MULTILINE))
    examples = [shlex.split(line) for line in EXAMPLE.findall(text)]
    assert examples
    for words in examples:
        assert tuple(words[: len(path)]) == path
        assert {word for word in words if word.startswith("--")} <= options


@pytest.mark.parametrize("path", paths(), ids=" ".join)
def test_every_command_takes_the_global_options(path: tuple[str, ...], fresh: Installation) -> None:
    """`--json`, `--key` and `--no-color` belong to every command."""
    text = text_of(path, fresh)
    assert all(f"  {option}" in text for option in ("--json", "--key KEY", "--no-color"))


def test_version(fresh: Installation) -> None:
    """`--version` names the program and the version of the package."""
    done = fresh.cli("--version")
    assert (done.code, done.out) == (0, f"pi-workflows {package_version()}\n")
