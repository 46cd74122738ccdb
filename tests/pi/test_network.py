"""Pi and its tests talk to nobody but the machine itself."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.pi.home import ROOT

pytestmark = pytest.mark.slow

_SECLUDED = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


@pytest.mark.usefixtures("pi_place")
def test_pi_tries_to_reach_nobody() -> None:
    """With the loopback interface alone all works, and the kernel counts no other attempt."""
    possible = subprocess.run([*_SECLUDED, "true"], capture_output=True, text=True, check=False)
    if possible.returncode != 0:
        pytest.skip(f"no network namespace can be made here: {possible.stderr.strip()}")
    done = subprocess.run(
        [*_SECLUDED, sys.executable, "-m", "tests.pi.secluded"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    assert set(counts["conversation"].values()) == {0}
    assert all(count > 0 for count in counts["control"].values())
