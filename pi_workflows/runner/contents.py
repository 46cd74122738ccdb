"""Values between runner and server: small ones in the frame, large ones by their digest."""

from __future__ import annotations

from typing import Final

import trio

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    Corrupt,
    LimitExceeded,
    PayloadInvalid,
    ProtocolViolation,
)
from pi_workflows.base.limits import INLINE_BYTES_MAX, VALUE_BYTES_MAX
from pi_workflows.protocol.content import (
    Assembly,
    BlobRef,
    ContentGet,
    ContentMissing,
    ContentPart,
    Ref,
    puts,
)
from pi_workflows.runner.channel import Channel

_LARGE_HINT: Final = "Write it to a file and let the output name the file and its digest."
_NOT_ASKED: Final = "a content part that was not asked for"


class Contents:
    """Sends and fetches values over the channel."""

    def __init__(self, channel: Channel) -> None:
        """Work on a channel whose content parts are given to `received`."""
        self._channel = channel
        self._fetching = trio.Lock()
        self._assembly: Assembly | None = None
        self._wanted: str | None = None
        self._answer: Blob | str | None = None
        self._answered = trio.Event()

    def ref(self, content: bytes) -> tuple[dict[str, Json], bool]:
        """Return the reference by which a proposal names a value. May be called from any thread.

        Args:
            content: The value's canonical JSON.

        Returns:
            The reference's JSON, and whether the value was put before it: the proposal that names
            it must then follow without delay.
        """
        if len(content) <= INLINE_BYTES_MAX:
            return {"json": canonical.fragment(content)}, False
        blob = Blob.of(content, "application/json")
        for part in puts(blob):
            self._channel.send(part)
        return BlobRef.of(blob).document(), True

    async def get(self, reference: Ref) -> bytes:
        """Return the canonical bytes that a reference stands for.

        Args:
            reference: An inline value, or the name of one that the run names.

        Raises:
            Corrupt: The server does not have it.
        """
        if not isinstance(reference, BlobRef):
            return canonical.encode(reference.value)
        async with self._fetching:
            self._assembly, self._answer = None, None
            self._wanted, self._answered = reference.sha256, trio.Event()
            self._channel.send(ContentGet(sha256=reference.sha256))
            await self._answered.wait()
            return self._fetched()

    def received(self, part: ContentPart | ContentMissing) -> None:
        """Take a part from the channel.

        Raises:
            ProtocolViolation: It was not asked for, or does not fit.
        """
        if part.sha256 != self._wanted:
            raise ProtocolViolation(_NOT_ASKED)
        if isinstance(part, ContentMissing):
            self._conclude(part.error)
            return
        if self._assembly is None:
            self._assembly = Assembly(part)
        blob = self._assembly.add(part)
        if blob is not None:
            self._conclude(blob)

    def _fetched(self) -> bytes:
        """Return the content that came, or raise Corrupt."""
        if isinstance(self._answer, Blob):
            return self._answer.content
        raise Corrupt(f"the server does not have a value of this run: {self._answer}")

    def _conclude(self, answer: Blob | str) -> None:
        """Give the answer to whoever waits for it."""
        self._answer, self._wanted = answer, None
        self._answered.set()


def encoded(value: Json, *, field: str, hint: str = _LARGE_HINT) -> bytes:
    """Encode a value for storage.

    Args:
        value: What the author's function returned, as JSON.
        field: What errors call it.
        hint: What to do when it is too large.

    Returns:
        Its canonical bytes.

    Raises:
        PayloadInvalid: It is not JSON; the path names the part.
        LimitExceeded: `valueTooLarge`, it is over 8 MiB.
    """
    content = canonical.encode(value, field=field)
    if len(content) > VALUE_BYTES_MAX:
        raise LimitExceeded(
            f"{field}: {len(content):,} bytes; at most {VALUE_BYTES_MAX:,}",
            code="valueTooLarge",
            field=field,
            hint=hint,
        )
    return content


def shown_text(value: object, *, what: str, chars_max: int, hint: str) -> str:
    """Return what an author's function gave as a text for a session.

    Args:
        value: What it gave.
        what: What errors call it.
        chars_max: Its greatest length.
        hint: What to do when it is longer.

    Raises:
        PayloadInvalid: `textInvalid`, it is no text, or an empty one; or it cannot be written.
        LimitExceeded: `textTooLong`.
    """
    if not isinstance(value, str) or not value.strip():
        kind = "is empty" if isinstance(value, str) else f"is a {type(value).__name__}"
        raise PayloadInvalid(f"the {what} {kind}: return text", code="textInvalid", field=what)
    if len(value) > chars_max:
        raise LimitExceeded(
            f"the {what} has {len(value):,} characters; at most {chars_max:,}.",
            code="textTooLong",
            field=what,
            hint=hint,
        )
    canonical.utf8(value, field=what)
    return value
