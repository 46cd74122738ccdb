"""Extensions are strict TypeScript against the types of the Pi that they are written for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.pi.home import PiPlace

pytestmark = pytest.mark.slow

EXTENSIONS = Path(__file__).parent / "extensions"


def test_the_probe_fits_pi(pi_place: PiPlace, tmp_path: Path) -> None:
    """The compiler has nothing to say of the probe, and something of a copy that misspells."""
    shutil.copytree(EXTENSIONS, tmp_path, dirs_exist_ok=True)
    (tmp_path / "node_modules").symlink_to(pi_place.modules)
    probe = (tmp_path / "probe.ts").read_text(encoding="utf-8")
    misspelt = probe.replace('"agent_settled"', '"agent_settles"')
    assert misspelt != probe
    (tmp_path / "misspelt.ts").write_text(misspelt, encoding="utf-8")
    done = subprocess.run(
        [str(pi_place.bin / "node"), str(pi_place.bin / "tsc"), "-p", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = [line for line in done.stdout.splitlines() if not line.startswith(" ")]
    assert complaints
    assert all(line.startswith("misspelt.ts(") for line in complaints)
