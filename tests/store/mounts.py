"""Mounts that a test makes: what only the system can put in the way of a path."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


class Mounts:
    """Mounts of this process's own view of the files, or of a test that is skipped."""

    def __init__(self) -> None:
        self._places: list[Path] = []

    def bind(self, what: Path, place: Path, *, read_only: bool = False) -> None:
        """Let a file or a directory appear at another place too."""
        options = ["-o", "bind"]
        self._mount([*options, str(what), str(place)], place)
        if read_only:
            self._mount(["-o", "remount,bind,ro", str(place)], None)

    def memory(self, place: Path, size_bytes: int) -> None:
        """Put a disk of so many bytes over a directory."""
        self._mount(["-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(place)], place)

    def end(self) -> None:
        """Take every mount away."""
        while self._places:
            subprocess.run(["umount", "-l", str(self._places.pop())], check=True)

    def _mount(self, arguments: list[str], place: Path | None) -> None:
        done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no right to mount here: {done.stderr.strip()}")
        if place is not None:
            self._places.append(place)
