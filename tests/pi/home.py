"""Where a Pi lives: its installation, and a home directory that only one test knows."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from tests.pi.model import MODEL_ID, Record

ROOT = Path(__file__).resolve().parents[2]
_PROBE = Path(__file__).parent / "extensions" / "probe.ts"
_PROVIDER = "loopback"


class PiMissing(Exception):
    """Pi is not installed; the message says what installs it."""


@dataclass(frozen=True, slots=True)
class PiPlace:
    """An installation of Pi with its Node.

    Attributes:
        directory: What `scripts/setup-pi` filled.
    """

    directory: Path

    @property
    def bin(self) -> Path:
        """The directory that holds `pi`, `node` and `tsc`."""
        return self.modules / ".bin"

    @property
    def modules(self) -> Path:
        """The packages: Pi's own types among them."""
        return self.directory / "node_modules"

    @property
    def compiled(self) -> Path:
        """Where Node keeps what it compiled, for all homes: a start takes half the time."""
        return self.directory / "compiled"

    @property
    def translated(self) -> Path:
        """Where Pi keeps what it made of an extension, by its path and content, for all homes."""
        return self.directory / "translated"


def find_pi() -> PiPlace:
    """Return the installation that belongs to this tree.

    Raises:
        PiMissing: There is none.
    """
    command = [str(ROOT / "scripts" / "setup-pi"), "--where"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise PiMissing(found.stderr.strip())
    return PiPlace(Path(found.stdout.strip()))


@dataclass(frozen=True, slots=True)
class PiHome:
    """A home directory and a project, for one or more processes of Pi.

    Attributes:
        root: Everything that Pi writes lies below.
        place: The installation.
        model_port: Where the only model listens.
        variables: What the environment holds besides what every Pi needs.
    """

    root: Path
    place: PiPlace
    model_port: int
    variables: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def directory(self) -> Path:
        """The home directory itself."""
        return self.root / "home"

    @property
    def agent(self) -> Path:
        """Where Pi keeps its settings and sessions, and finds extensions in `extensions`."""
        return self.directory / ".pi" / "agent"

    @property
    def project(self) -> Path:
        """The directory that Pi works in."""
        return self.root / "project"

    @property
    def errors(self) -> Path:
        """What every process of this home wrote to standard error."""
        return self.root / "errors.txt"

    def make(self) -> None:
        """Make the directories, with settings that name the model and the probe, nothing else."""
        for directory in (self.agent / "extensions", self.project, self.root / "tmp"):
            directory.mkdir(parents=True)
        self.place.translated.mkdir(exist_ok=True)
        (self.root / "tmp" / "jiti").symlink_to(self.place.translated)
        provider: Record = {
            "baseUrl": f"http://127.0.0.1:{self.model_port}/v1",
            "api": "openai-completions",
            # Without a key the model is not offered; it is never looked at.
            "apiKey": "none",
            # Requests name their session, so that a test can tell two sessions apart.
            "compat": {
                "sendSessionAffinityHeaders": True,
                "sessionAffinityFormat": "openrouter",
            },
            "models": [{"id": MODEL_ID, "contextWindow": 200_000, "maxTokens": 4_096}],
        }
        self._write("models.json", {"providers": {_PROVIDER: provider}})
        self._write(
            "settings.json",
            {
                "defaultProvider": _PROVIDER,
                "defaultModel": MODEL_ID,
                "enableInstallTelemetry": False,
                "extensions": [str(_PROBE)],
                "retry": {"baseDelayMs": 50},
            },
        )

    def _write(self, name: str, value: Record) -> None:
        """Write one of Pi's settings files."""
        (self.agent / name).write_text(json.dumps(value), encoding="utf-8")

    def environment(self) -> dict[str, str]:
        """Return the whole environment of a Pi: nothing of the machine's but the path."""
        return {
            "PATH": f"{self.place.bin}{os.pathsep}{os.environ['PATH']}",
            "LANG": "C.UTF-8",
            "HOME": str(self.directory),
            "TMPDIR": str(self.root / "tmp"),
            "NODE_COMPILE_CACHE": str(self.place.compiled),
            "PI_OFFLINE": "1",
            "PI_TELEMETRY": "0",
            "PI_SKIP_VERSION_CHECK": "1",
            "PROBE_TRACE": str(self.root / "trace.jsonl"),
            **self.variables,
        }

    def processes(self) -> list[int]:
        """Return every process that works below the root: Pi, and what its tools started."""
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                # A process may end while it is looked at, and others are not ours to look at.
                with suppress(OSError):
                    if (entry / "cwd").readlink().is_relative_to(self.root):
                        found.append(int(entry.name))
        return found

    def kill_processes(self) -> None:
        """Kill them all: a command of Pi's shell tool leads a group of its own."""
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def trace(self) -> list[Record]:
        """Return what the probe was told until now, by every process of this home."""
        lines = (self.root / "trace.jsonl").read_text(encoding="utf-8").splitlines()
        return [cast("Record", json.loads(line)) for line in lines]

    def session_files(self) -> list[Path]:
        """Return the files of all sessions, the oldest first."""
        return sorted((self.agent / "sessions").glob("*/*.jsonl"))
