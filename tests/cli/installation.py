"""A person's installation: a state directory, a project, and the command line."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.cli.program import run

PROGRAM: Final = "from pi_workflows.cli.main import main; main()"
WORKFLOWS: Final = Path(__file__).parent / "workflows"
# What the terminal of whoever runs the tests would say.
_SCREEN: Final = frozenset({"COLUMNS", "LINES", "NO_COLOR"})
_FRAME_DEPTH: Final = 128


@dataclass(frozen=True, slots=True)
class Done:
    """What a command came to.

    Attributes:
        code: Its exit code.
        out: Its standard output.
        err: Its standard error.
    """

    code: int
    out: str
    err: str

    @property
    def documents(self) -> list[dict[str, Json]]:
        """The lines of standard output, each a canonical JSON object."""
        found: list[dict[str, Json]] = []
        for line in self.out.encode().splitlines():
            document = canonical.decode_canonical(line, depth_max=_FRAME_DEPTH)
            assert isinstance(document, dict)
            found.append(document)
        return found

    @property
    def document(self) -> dict[str, Json]:
        """The only line of standard output."""
        (document,) = self.documents
        return document


@dataclass(frozen=True, slots=True)
class Installation:
    """A state directory with a short path, and a project beside it.

    Attributes:
        root: The directory that holds both.
        environment: Variables that differ from the test's own.
    """

    root: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def state(self) -> Path:
        """The state directory."""
        return self.root / "state"

    @property
    def project(self) -> Path:
        """The project, in which every command is run."""
        return self.root / "project"

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a command."""
        return {
            **{name: text for name, text in os.environ.items() if name not in _SCREEN},
            "PI_WORKFLOWS_STATE_DIR": str(self.state),
            **self.environment,
        }

    def cli(self, *arguments: str, stdin: bytes = b"") -> Done:
        """Run one command in this process, with nothing of it on a terminal."""
        out, err = _stream(), _stream()
        with _in_place(self.variables, self.project, _stream(stdin), out, err):
            code = run(arguments)
        return Done(code, _text(out), _text(err))

    @contextmanager
    def spawned(self, *arguments: str) -> Generator[subprocess.Popen[bytes]]:
        """Run one command in a process of its own, its output in pipes; end it with the body."""
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            env=self.variables,
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Its Ctrl-C is its own.
            process_group=0,
        )
        with child:
            try:
                yield child
            finally:
                child.kill()

    def start(self, workflow: str, run_id: str, value: str = "{}") -> Done:
        """Start a run and do not follow it."""
        target = str(WORKFLOWS / f"{workflow}_workflow.py")
        done = self.cli("run", target, "--input", value, "--run-id", run_id, "--detach")
        assert done.code == 0, done.err
        return done

    def gate(self, name: str) -> Path:
        """Return a new named pipe at which a run waits until somebody writes into it."""
        path = self.root / name
        os.mkfifo(path)
        return path


def _stream(content: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


@contextmanager
def _in_place(
    variables: Mapping[str, str],
    directory: Path,
    stdin: io.TextIOWrapper,
    stdout: io.TextIOWrapper,
    stderr: io.TextIOWrapper,
) -> Generator[None]:
    """Put a process's surroundings in place while the body runs."""
    streams = sys.stdin, sys.stdout, sys.stderr
    environment, here = dict(os.environ), Path.cwd()
    try:
        sys.stdin, sys.stdout, sys.stderr = stdin, stdout, stderr
        os.environ.clear()
        os.environ.update(variables)
        os.chdir(directory)
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(here)


@contextmanager
def installed() -> Generator[Installation]:
    """Make an installation; in the end its server is stopped and everything of it removed."""
    memory = Path("/dev/shm")  # noqa: S108 - the directory in it is private and random
    root = Path(tempfile.mkdtemp(prefix="pw-", dir=memory if memory.is_dir() else None))
    installation = Installation(root)
    installation.project.mkdir()
    try:
        yield installation
        installation.environment.clear()
        stopped = installation.cli("server", "stop", "--now")
        assert stopped.code in (0, 4), stopped.err
    finally:
        shutil.rmtree(root)
