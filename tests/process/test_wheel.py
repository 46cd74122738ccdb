"""The built wheel needs nothing of this repository, and replacing it disturbs no running server."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.process.installation import Installation

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "repo_health_workflow.py"


# The interpreter below the suite's environment, which has no pip of its own.
BASE = str(Path(sys.base_prefix) / "bin" / "python3")


def pip(environment: Path, *arguments: str) -> None:
    """Run pip quietly on an environment."""
    python = str(environment / "bin" / "python")
    flags = ["--quiet", "--disable-pip-version-check", "--no-input"]
    subprocess.run([BASE, "-m", "pip", "--python", python, *flags, *arguments], check=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel."""
    target = tmp_path_factory.mktemp("wheel")
    # The suite's environment has the build backend at its pinned version.
    pip(
        Path(sys.prefix),
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        str(target),
        str(ROOT),
    )
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def command(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into an empty environment, and return its command."""
    place = tmp_path_factory.mktemp("environment")
    subprocess.run([BASE, "-m", "venv", "--without-pip", str(place)], check=True)
    pip(place, "install", "--constraint", str(ROOT / "constraints.txt"), str(wheel))
    return place / "bin" / "pi-workflows"


def repository(place: Path) -> Path:
    """Make a small git repository with a history."""
    place.mkdir()

    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, "-C", str(place), *arguments], check=True)

    git("init", "--quiet")
    for number in range(3):
        (place / "a.txt").write_text(f"{number}\n" * (number + 1))
        (place / "b.txt").write_text(f"{number}\n")
        git("add", "-A")
        git("commit", "--quiet", "-m", f"change {number}")
    return place


def contents(directory: Path) -> dict[str, tuple[str, int]]:
    """Return digest and modification time of every file below a directory."""
    return {
        str(file.relative_to(directory)): (
            hashlib.sha256(file.read_bytes()).hexdigest(),
            file.stat().st_mtime_ns,
        )
        for file in sorted(directory.rglob("*"))
        if file.is_file()
    }


@pytest.mark.slow
def test_the_wheel_runs_the_example_from_anywhere_and_an_upgrade_touches_no_state(
    installation: Installation, wheel: Path, command: Path
) -> None:
    """From `/`, in an environment of its own; a reinstall changes no file of its server."""
    clone = repository(installation.root / "clone")
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(installation.root),
        "PI_WORKFLOWS_STATE_DIR": str(installation.state),
    }
    asked = subprocess.run(
        [command, "run", EXAMPLE, "--input", json.dumps({"repo": str(clone)}), "--json"],
        cwd="/",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 0, asked.stderr + asked.stdout
    document = json.loads(asked.stdout)
    assert document["outcome"] == "completed"
    assert document["view"]["state"]["finalOutput"]["commits"] == 3
    watched = subprocess.run(
        [command, "run", "monitor", "--input", '{"command": ["true"]}', "--json"],
        cwd="/",
        env=environment,
        capture_output=True,
        check=False,
    )
    assert watched.returncode == 0, watched.stderr + watched.stdout
    assert json.loads(watched.stdout)["view"]["state"]["finalOutput"]["met"] is True
    server = reported(command, environment)["pid"]
    assert isinstance(server, int)
    try:
        # A server that stands still writes nothing itself: whatever changes, the upgrade changed.
        os.kill(server, signal.SIGSTOP)
        before = contents(installation.state)
        pip(command.parent.parent, "install", "--no-deps", "--force-reinstall", str(wheel))
        assert contents(installation.state) == before
        os.kill(server, signal.SIGCONT)
        assert reported(command, environment)["pid"] == server
    finally:
        os.kill(server, signal.SIGCONT)
        subprocess.run([command, "server", "stop"], cwd="/", env=environment, check=True)


def reported(command: Path, environment: dict[str, str]) -> dict[str, object]:
    """Return what the server says about itself."""
    status = subprocess.run(
        [command, "server", "status", "--json"],
        cwd="/",
        env=environment,
        capture_output=True,
        check=True,
    )
    document: dict[str, object] = json.loads(status.stdout)
    return document
