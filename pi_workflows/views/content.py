"""The content behind a reference, in chunks.

The client protocol, "Content references": run, digest and media type of a reference must all match.
"""

from __future__ import annotations

import base64
from typing import Final, NamedTuple

from pi_workflows.base.errors import NotFound, PayloadInvalid
from pi_workflows.base.limits import CARRIED_BYTES_MAX, CONTENT_CHUNK_BYTES_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.protocol.views import ContentChunk
from pi_workflows.views.value import Value, parse_path

SQL: Final = load(__package__, "content.sql")


class _Chunk(NamedTuple):
    byte_length: int
    data: bytes


def content_chunk(read: Read, run_id: str, path: str, offset: int) -> ContentChunk:
    """Return the next part of a value or a document that a view named by reference.

    Args:
        read: One consistent read.
        run_id: The run whose view it was.
        path: The reference's path.
        offset: Where the part begins, in bytes; the `nextOffset` of the chunk before.

    Returns:
        `pi-workflows.content-chunk.v1`, with at most 192 KiB.

    Raises:
        PayloadInvalid: The path is no reference's, or the offset lies behind the end.
        NotFound: The run is gone, or names no such value.
    """
    digest, media_type = parse_path(path)
    row = read.one(
        _Chunk,
        SQL["named_content"],
        run_id=run_id,
        digest=digest,
        media_type=media_type,
        start=offset,
        bytes_max=CONTENT_CHUNK_BYTES_MAX,
    )
    if row is None:
        raise NotFound(
            f"Run {run_id} has no content of this name.", code="contentMissing", field="path"
        )
    if offset > row.byte_length:
        raise PayloadInvalid(
            f"offset: the content has {row.byte_length} bytes", code="contentOffset", field="offset"
        )
    next_offset = offset + len(row.data)
    return ContentChunk(
        run_id=run_id,
        path=path,
        media_type=media_type,
        content_bytes=row.byte_length,
        sha256=digest.hex(),
        offset=offset,
        next_offset=next_offset,
        complete=next_offset == row.byte_length,
        data=base64.b64encode(row.data).decode(),
    )


def stored_value(read: Read, digest: bytes) -> Value | None:
    """Return a stored value by its digest, or None when there is none."""
    return read.one(Value.of, SQL["value"], digest=digest, carried_bytes=CARRIED_BYTES_MAX)
