"""Values that a runner puts are ones that everybody can read."""

from __future__ import annotations

import pytest

from pi_workflows.base.blob import Blob, MediaType
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.protocol.content import BlobRef, puts
from pi_workflows.server.content import Incoming


def put(incoming: Incoming, blob: Blob) -> None:
    """Put a value in its parts."""
    for part in puts(blob):
        incoming.put(part)


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b'{"a": 1}', "application/json"),
        (b'{"a":1,"a":2}', "application/json"),
        (b"[" * 200 + b"]" * 200, "application/json"),
        (b"1.0", "application/json"),
        (b"\xff", "application/json"),
        (b"\xff", "text/plain"),
    ],
)
def test_an_unreadable_value_ends_the_runner(content: bytes, media_type: MediaType) -> None:
    """JSON that is not canonical, or text that is not UTF-8, is never stored."""
    with pytest.raises(ProtocolViolation) as raised:
        put(Incoming(), Blob.of(content, media_type))
    assert raised.value.reason_code == "contentUnreadable"


@pytest.mark.parametrize("blob", [Blob.json({"a": [1, "é"]}), Blob.text("é")])
def test_a_readable_value_is_there_for_a_proposal(blob: Blob) -> None:
    """What was put whole can be named."""
    incoming = Incoming()
    put(incoming, blob)
    assert incoming.value(BlobRef.of(blob)) == blob
