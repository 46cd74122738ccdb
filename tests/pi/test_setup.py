"""The installation of Pi says what is wrong, and never passes off another Pi as the wanted one."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.pi.home import ROOT, PiMissing, PiPlace, find_pi


def setup(
    cache: Path, *arguments: str, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the script on a cache of its own.

    Args:
        cache: The cache.
        arguments: What follows the name of the script.
        path: A directory whose programs come first.
    """
    place = os.environ["PATH"] if path is None else f"{path}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(ROOT / "scripts" / "setup-pi"), *arguments],
        env={**os.environ, "PI_WORKFLOWS_PI_CACHE": str(cache), "PATH": place},
        capture_output=True,
        text=True,
        check=False,
    )


def program(directory: Path, name: str, body: str) -> None:
    """Write a program that runs a line of shell."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / name
    file.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    file.chmod(0o755)


def installing(version: str) -> str:
    """Return what an npm does that installs programs which call themselves this version."""
    bin_directory = '"$2/node_modules/.bin"'
    lines = [f"mkdir -p {bin_directory}"]
    for name, said in (("pi", version), ("node", "v22.23.5")):
        lines.append(f"printf '#!/bin/sh\\necho {said}\\n' >{bin_directory}/{name}")
        lines.append(f"chmod +x {bin_directory}/{name}")
    return "\n".join(lines)


def test_a_missing_pi_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no Pi, the reason names the version and what installs it."""
    monkeypatch.setenv("PI_WORKFLOWS_PI_CACHE", str(tmp_path))
    with pytest.raises(PiMissing, match=r"Pi 1\.6\.0, .* is not in .*; scripts/setup-pi puts it"):
        find_pi()
    assert list(tmp_path.iterdir()) == []


def test_a_failed_installation_is_loud(tmp_path: Path) -> None:
    """What npm says of its failure is shown, the script fails, and nothing half made is left."""
    program(tmp_path / "bin", "npm", "echo npm error code EAI_AGAIN; exit 7")
    done = setup(tmp_path / "cache", path=tmp_path / "bin")
    assert done.returncode != 0
    *_, reason, advice = done.stderr.splitlines()
    assert reason == "npm error code EAI_AGAIN"
    assert advice.endswith("it needs a network, once")
    assert done.stdout == ""
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]


def test_what_is_installed_is_installed_once(tmp_path: Path) -> None:
    """The second time needs no npm; both times one line says what is where."""
    program(tmp_path / "bin", "npm", installing("1.6.0"))
    first = setup(tmp_path / "cache", path=tmp_path / "bin")
    program(tmp_path / "bin", "npm", "exit 7")
    second = setup(tmp_path / "cache", path=tmp_path / "bin")
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    where = setup(tmp_path / "cache", "--where").stdout.strip()
    assert first.stdout == second.stdout
    assert first.stdout.startswith(f"Pi 1.6.0, Node v22.23.5 in {where} (lock ")
    assert second.stderr == ""


def test_another_version_is_refused(tmp_path: Path) -> None:
    """What calls itself another version is not used, whether it comes from npm or was changed."""
    program(tmp_path / "bin", "npm", installing("1.5.9"))
    wrong = setup(tmp_path / "cache", path=tmp_path / "bin")
    assert wrong.returncode != 0
    assert "asked for Pi 1.6.0, Node v22.23.5 but" in wrong.stderr
    assert setup(tmp_path / "cache", "--where").returncode != 0
    program(tmp_path / "bin", "npm", installing("1.6.0"))
    assert setup(tmp_path / "cache", path=tmp_path / "bin").returncode == 0
    place = PiPlace(Path(setup(tmp_path / "cache", "--where").stdout.strip()))
    program(place.bin, "pi", "echo 1.7.0")
    changed = setup(tmp_path / "cache")
    assert changed.returncode != 0
    assert "holds Pi 1.7.0" in changed.stderr
