"""Values between one runner and the server: what it put and has not named, and what it may get.

The runner protocol, `content.put`, `content.get`, `content.part`. A value that was put is held in
memory until a proposal names it; while it is, its digest belongs to an active transfer, which a
collection of blobs must spare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import PayloadInvalid, ProtocolViolation
from pi_workflows.base.limits import CONTENT_UNNAMED_BYTES_MAX, VALUE_DEPTH_MAX
from pi_workflows.protocol.content import (
    Assembly,
    BlobRef,
    ContentMissing,
    ContentPart,
    ContentPut,
    JsonRef,
    Ref,
    parts,
)


class Incoming:
    """What one runner put."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._assemblies: dict[str, Assembly] = {}
        self._sizes: dict[str, int] = {}
        self._values: dict[str, Blob] = {}

    @property
    def digests(self) -> frozenset[str]:
        """The values that are under way or wait for a proposal, as hex digests."""
        return frozenset(self._sizes)

    def put(self, part: ContentPut) -> None:
        """Take a part.

        Raises:
            ProtocolViolation: `contentMismatch`; `contentUnnamed`: too much that nothing named;
                `contentUnreadable`: not what its media type says.
        """
        assembly = self._assemblies.get(part.sha256)
        if assembly is None:
            assembly = self._assemblies[part.sha256] = Assembly(part)
            self._sizes[part.sha256] = part.content_bytes
            if sum(self._sizes.values()) > CONTENT_UNNAMED_BYTES_MAX:
                raise ProtocolViolation(
                    "too much content that nothing names", code="contentUnnamed"
                )
        blob = assembly.add(part)
        if blob is not None:
            _require_readable(blob)
            self._values[part.sha256] = blob
            del self._assemblies[part.sha256]

    def value(self, ref: Ref) -> Blob:
        """Return the value that a proposal holds or names.

        Raises:
            ProtocolViolation: `contentUnknown`: it was not put.
            LimitExceeded: `inlineTooLarge`.
            PayloadInvalid: It holds what may not be stored.
        """
        if isinstance(ref, JsonRef):
            return ref.blob()
        blob = self._values.get(ref.sha256)
        if blob is None or ref != BlobRef.of(blob):
            raise ProtocolViolation("a value that was not put", code="contentUnknown")
        return blob

    def name(self, blobs: Iterable[Blob]) -> None:
        """Give up values, which a proposal has named."""
        for blob in blobs:
            self._values.pop(blob.hex, None)
            if blob.hex not in self._assemblies:
                self._sizes.pop(blob.hex, None)


def _require_readable(blob: Blob) -> None:
    """Refuse a value that nobody could read: an author's code shares the runner's channel."""
    try:
        if blob.media_type == "application/json":
            canonical.decode_canonical(blob.content, depth_max=VALUE_DEPTH_MAX)
        else:
            blob.content.decode()
    except (PayloadInvalid, UnicodeDecodeError) as error:
        raise ProtocolViolation("unreadable content", code="contentUnreadable") from error


class Outgoing:
    """What one runner may get: the values that the server named to it, which are all of its run."""

    def __init__(self, read: Callable[[bytes], bytes]) -> None:
        """Begin with nothing.

        Args:
            read: Returns the stored bytes of a digest.
        """
        self._read = read
        self._named: dict[str, BlobRef] = {}

    def name(self, refs: Iterable[Ref]) -> None:
        """Let the runner get what it was just told about."""
        self._named.update((ref.sha256, ref) for ref in refs if isinstance(ref, BlobRef))

    def parts(self, sha256: str) -> Iterator[ContentPart | ContentMissing]:
        """Yield the answer to a `content.get`: the parts of a value, or why there are none."""
        ref = self._named.get(sha256)
        if ref is None:
            yield ContentMissing(sha256=sha256, error="The run does not name it.")
            return
        yield from parts(Blob.of(self._read(bytes.fromhex(sha256)), ref.media_type))
