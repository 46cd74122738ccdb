"""Frames.

One canonical JSON object in UTF-8 and a line feed, at most 1 MiB with it, in both directions.

The client protocol, "Transport and frames"; the runner's private channel uses the same. Everything
a peer can do wrong is a ProtocolViolation, whose words never hold what the peer sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import LimitExceeded, PayloadInvalid, ProtocolViolation
from pi_workflows.base.limits import FRAME_BYTES_MAX, FRAME_DEPTH_MAX

_LINE_FEED: Final = b"\n"


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame as it came: its bytes without the line feed, and the object that they stand for."""

    content: bytes
    value: dict[str, Json]

    @property
    def digest(self) -> bytes:
        """SHA-256 of the content: equal frames have equal bytes."""
        return hashlib.sha256(self.content).digest()

    def body(self, schema: str) -> dict[str, Json]:
        """Return the members other than `schema`.

        Raises:
            ProtocolViolation: The frame's schema is not the given one.
        """
        if self.value.get("schema") != schema:
            raise ProtocolViolation("the frame is of another protocol", code="wrongSchema")
        return {name: member for name, member in self.value.items() if name != "schema"}


class FrameReader:
    """Splits a byte stream into frames. It holds at most one incomplete frame."""

    def __init__(self) -> None:
        """Start at the beginning of a stream."""
        self._buffer = bytearray()
        # Bytes already known to hold no line feed, so that a slow peer costs linear time.
        self._scanned = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take bytes from the stream.

        Args:
            data: What was read; any part of a frame or several. It is kept even if the result is
                not consumed.

        Returns:
            The frames that are complete now, in order, decoded one by one as the caller goes on.

        Raises:
            ProtocolViolation: From the iterator, in the place of the first bad frame; those before
                it are good.
        """
        self._buffer += data
        return self._frames()

    def end(self) -> None:
        """Note the end of the stream.

        Raises ProtocolViolation (`frameTruncated`) when it cut a frame.
        """
        if self._buffer:
            raise ProtocolViolation("the stream ended inside a frame", code="frameTruncated")

    def _frames(self) -> Iterator[Frame]:
        """Yield each complete frame in the buffer; refuse one that grows over the limit."""
        while (at := self._buffer.find(_LINE_FEED, self._scanned)) >= 0:
            if at >= FRAME_BYTES_MAX:
                raise _too_large()
            content = bytes(self._buffer[:at])
            del self._buffer[: at + 1]
            self._scanned = 0
            if content:
                yield decode(content)
        self._scanned = len(self._buffer)
        if self._scanned > FRAME_BYTES_MAX:
            raise _too_large()


def encode(value: Mapping[str, Json]) -> bytes:
    """Write a frame.

    Args:
        value: The object; stored canonical bytes may stand in it as `canonical.fragment`.

    Returns:
        Its canonical bytes and a line feed.

    Raises:
        LimitExceeded: `frameTooLarge`: the frame would be over 1 MiB.
        PayloadInvalid: The value is not JSON, or is nested deeper than 128.
    """
    return framed(canonical.encode(dict(value), depth_max=FRAME_DEPTH_MAX, field="frame"))


def framed(content: bytes) -> bytes:
    """Write a frame whose content is encoded already.

    Args:
        content: The canonical bytes of an object.

    Returns:
        The content and a line feed.

    Raises:
        LimitExceeded: `frameTooLarge`: the frame would be over 1 MiB.
    """
    if len(content) >= FRAME_BYTES_MAX:
        raise LimitExceeded(
            f"a frame of {len(content) + 1} bytes is over the limit of {FRAME_BYTES_MAX}",
            code="frameTooLarge",
        )
    return content + _LINE_FEED


def decode(content: bytes) -> Frame:
    """Read one frame's content, without its line feed.

    Args:
        content: The bytes.

    Returns:
        The frame; writing its value gives the same bytes.

    Raises:
        ProtocolViolation: Not UTF-8, not JSON, too deep, not canonical, or not an object; its code
            says which.
    """
    try:
        value = canonical.decode_canonical(content, depth_max=FRAME_DEPTH_MAX)
    except PayloadInvalid as error:
        # The refusal's own words hold names that the peer chose; its code is one of a few.
        raise ProtocolViolation(
            f"a frame is not canonical JSON ({error.reason_code})", code=error.reason_code
        ) from None
    if not isinstance(value, dict):
        raise ProtocolViolation("a frame is not an object", code="notObject")
    return Frame(content, value)


def _too_large() -> ProtocolViolation:
    """Return the violation of a frame over its limit."""
    return ProtocolViolation(
        f"a frame is over the limit of {FRAME_BYTES_MAX} bytes", code="frameTooLarge"
    )
