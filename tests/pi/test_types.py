"""Extensions are strict TypeScript against the types of the Pi that they are written for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.pi.home import PiPlace

pytestmark = pytest.mark.slow

EXTENSIONS = Path(__file__).parent / "extensions"


def complaints(place: PiPlace, directory: Path) -> str:
    """Return what the compiler says of a directory that has a `tsconfig.json`."""
    (directory / "node_modules").symlink_to(place.modules)
    done = subprocess.run(
        [str(place.bin / "node"), str(place.bin / "tsc"), "-p", str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_probe_fits_pi(pi_place: PiPlace, tmp_path: Path) -> None:
    """The compiler has nothing to say of the probe, and something of a misspelt event."""
    for name in ("good", "bad"):
        shutil.copytree(EXTENSIONS, tmp_path / name)
    assert complaints(pi_place, tmp_path / "good") == ""
    probe = tmp_path / "bad" / "probe.ts"
    text = probe.read_text(encoding="utf-8")
    probe.write_text(text.replace('"agent_settled"', '"agent_settles"'), encoding="utf-8")
    assert "probe.ts" in complaints(pi_place, tmp_path / "bad")
