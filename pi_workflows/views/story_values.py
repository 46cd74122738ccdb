"""What a story may say of the values that a run has: how large they are, never what they hold."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.errors import Corrupt
from pi_workflows.base.measures import size
from pi_workflows.base.sentences import one_line
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.effect.state import EffectPayload
from pi_workflows.domain.failure import Failure

SQL: Final = load(__package__, "story.sql")

DIGEST_CHARS: Final = 12
"""Enough of a digest to tell values apart by eye."""


class Values:
    """Looks up values by their digests.

    Args:
        read: The story's read.
    """

    def __init__(self, read: Read) -> None:
        self._read = read

    def described(self, digest: str, of: str | None = None) -> str:
        """Return the size and the beginning of the digest of a value: `12 bytes (3f2a8c91d0b4)`.

        Args:
            digest: The value's digest, hex.
            of: What the value is, behind its size: `12 bytes of output (3f2a8c91d0b4)`.

        Raises:
            Corrupt: It is missing.
        """
        count = self._read.one(int, SQL["story_bytes"], blob_hash=bytes.fromhex(digest))
        if count is None:
            raise Corrupt(f"The value {digest} is missing.", code="blobMissing")
        what = f"{size(count)} of {of}" if of else size(count)
        return f"{what} ({digest[:DIGEST_CHARS]})"

    def failure(self, digest: str) -> str:
        """Return a stored error in one line: its message and its code.

        Raises:
            Corrupt: It is missing, or is no error.
        """
        found = self._read.document(Failure.parse, bytes.fromhex(digest))
        return f"{one_line(found.message)} ({found.code})"

    def effect(self, digest: str) -> EffectPayload:
        """Return what an action's effect is about. Raises Corrupt when it is missing."""
        return self._read.document(EffectPayload.parse, bytes.fromhex(digest))
