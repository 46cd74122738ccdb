"""`state verify`: the bytes that it verifies a second, of read-and-hash.

Read-and-hash is the least that anybody must do who looks at every byte of a file: read it from its
beginning to its end and take one SHA-256 over it, in the same process and round. Both find the file
in the system's cache. Verification opens the file, checks its schema and everything that
`state verify FILE` checks; the file is sound, or the figure would be none.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.figure import ROUNDS, SYSTEM, Figure, seconds
from benchmarks.setting import Setting
from pi_workflows.audit.verification import verify_file

QUICK_SMALL: Final = "verify --quick, of read-and-hash, small rows"
QUICK_BLOBS: Final = "verify --quick, of read-and-hash, 64 KiB blobs"
FULL_SMALL: Final = "full verify, of read-and-hash, small rows"


def quick_small(setting: Setting) -> list[Figure]:
    """Measure the quick check of small rows."""
    return [_share(setting, QUICK_SMALL, setting.small_rows, is_quick=True)]


def quick_blobs(setting: Setting) -> list[Figure]:
    """Measure the quick check of values of 64 KiB."""
    return [_share(setting, QUICK_BLOBS, setting.large_blobs, is_quick=True)]


def full_small(setting: Setting) -> list[Figure]:
    """Measure the whole check of small rows, digests and replay included."""
    return [_share(setting, FULL_SMALL, setting.small_rows, is_quick=False)]


def _share(setting: Setting, metric: str, file: Path, *, is_quick: bool) -> Figure:
    """Return how fast a file is verified, of how fast it is read and hashed."""
    _read_and_hash(file)
    shares: list[float] = []
    for _ in range(ROUNDS):
        setting.anchor.round()
        hashed = seconds(lambda: _read_and_hash(file))
        verified = seconds(lambda: _verify(file, is_quick=is_quick))
        shares.append(hashed / verified)
    unit = "of read-and-hash"
    return Figure(SYSTEM, metric, median(shares), unit, durable=False, n=file.stat().st_size)


def _read_and_hash(file: Path) -> None:
    """Read a file and hash it."""
    with file.open("rb") as stream:
        hashlib.file_digest(stream, "sha256")


def _verify(file: Path, *, is_quick: bool) -> None:
    """Verify a file, in which nothing may be found."""
    result = verify_file(file, live_directory=None, is_quick=is_quick)
    assert result.is_valid, result.violations
