"""Real children of tests, and the proof that none of them is left."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pi_workflows.base import ids
from pi_workflows.server.registry import Child, Registry, environment

PATIENCE_SECONDS: Final = 30.0
_COOKIE: Final = "PI_WORKFLOWS_WORKER"


class Nest:
    """Starts children from Python text.

    Attributes:
        directory: Where the registry's files are.
        registry: The registry.
        worker_epochs: Of every child so far.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.registry = Registry(directory)
        self.worker_epochs: list[str] = []

    def spawn(
        self,
        program: str,
        *arguments: str,
        env: dict[str, str] | None = None,
        worker_epoch: str | None = None,
        **ends: int,
    ) -> Child:
        """Start a program; `ends` are descriptors for stdin, stdout, stderr and channel."""
        worker_epoch = worker_epoch or ids.random_id("worker")
        self.worker_epochs.append(worker_epoch)
        return self.registry.spawn(
            [sys.executable, "-I", "-c", textwrap.dedent(program), *arguments],
            kind="run",
            worker_epoch=worker_epoch,
            env=environment(dict(os.environ) if env is None else env, None, worker_epoch),
            cwd="/",
            **ends,
        )


@contextmanager
def nest(directory: Path) -> Generator[Nest]:
    """Give a nest; afterwards no process of its children may be left."""
    directory.mkdir(parents=True, exist_ok=True)
    made = Nest(directory)
    yield made
    assert cookied(made.worker_epochs) == []


def cookied(worker_epochs: list[str]) -> list[int]:
    """Return every live process that carries one of these cookies."""
    wanted = {f"{_COOKIE}={epoch}".encode() for epoch in worker_epochs}
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and not wanted.isdisjoint(_environment(entry))
    ]


def _environment(entry: Path) -> set[bytes]:
    """Return the variables of a process; none of one that has ended."""
    try:
        return set((entry / "environ").read_bytes().split(b"\0"))
    except OSError:
        return set()
