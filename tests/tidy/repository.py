"""What the tidy tests look at: the files in the repository, and those that git would add."""

from __future__ import annotations

import ast
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pi_workflows", "projections", "migrations_forbidden")
# Made for tests, and in no wheel (pyproject.toml).
UNSHIPPED = "migrations_forbidden/specimens/"


@dataclass(frozen=True, slots=True)
class File:
    """One file.

    Attributes:
        path: Its path from the repository's root, with slashes.
        content: Its bytes.
        is_executable: Whether its owner may run it.
    """

    path: str
    content: bytes
    is_executable: bool = False

    @property
    def text(self) -> str | None:
        """The content as text, None when it is none."""
        try:
            return self.content.decode()
        except UnicodeDecodeError:
            return None

    @property
    def folder(self) -> str:
        """The path of the folder that holds it."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Module:
    """One Python file, parsed.

    Attributes:
        path: Its path from the repository's root.
        text: Its source.
        tree: Its syntax tree.
    """

    path: str
    text: str
    tree: ast.Module

    @property
    def folder(self) -> str:
        """The path of the folder that holds it."""
        return self.path.rpartition("/")[0]

    @property
    def is_product(self) -> bool:
        """Whether it is installed with the product."""
        packages = tuple(f"{package}/" for package in PACKAGES)
        return self.path.startswith(packages) and not self.path.startswith(UNSHIPPED)


def module(path: str, text: str) -> Module:
    """Parse a Python file."""
    return Module(path, text, ast.parse(text))


def _listed(*options: str) -> list[str]:
    """Return what git lists with these options."""
    command = ["git", "ls-files", "-z", *options]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    return [name for name in answer.stdout.decode().split("\0") if name]


@cache
def files() -> tuple[File, ...]:
    """Return every file that git tracks, and those that it would if they were added."""
    found: list[File] = []
    for name in sorted({*_listed("--cached"), *_listed("--others", "--exclude-standard")}):
        path = ROOT / name
        if path.is_file() and not path.is_symlink():
            found.append(File(name, path.read_bytes(), bool(path.stat().st_mode & 0o100)))
    assert found, "git lists no file"
    return tuple(found)


@cache
def modules() -> tuple[Module, ...]:
    """Return every Python file, parsed."""
    found = tuple(
        module(file.path, file.text or "") for file in files() if file.path.endswith(".py")
    )
    assert any(each.is_product for each in found), "no module of the product"
    return found


def links() -> list[str]:
    """Return the symbolic links among the files."""
    return [file for file in _listed("--cached") if (ROOT / file).is_symlink()]
