"""Values that go in parts: what is put together is what was named, or nothing."""

from __future__ import annotations

import base64
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import LimitExceeded, ProtocolViolation
from pi_workflows.base.limits import CONTENT_PART_BYTES_MAX, INLINE_BYTES_MAX
from pi_workflows.protocol import runner
from pi_workflows.protocol.content import (
    Assembly,
    BlobRef,
    ContentPart,
    ContentPut,
    JsonRef,
    parts,
    puts,
    ref,
)


def _part(blob: Blob, offset: int, content: bytes) -> ContentPart:
    """Return a part of a value."""
    return ContentPart(
        sha256=blob.hex,
        media_type=blob.media_type,
        content_bytes=len(blob.content),
        offset=offset,
        data=base64.b64encode(content).decode(),
    )


@pytest.mark.parametrize(
    "size_bytes",
    [0, 1, CONTENT_PART_BYTES_MAX, CONTENT_PART_BYTES_MAX + 1, 2 * CONTENT_PART_BYTES_MAX],
)
def test_a_value_arrives_as_it_left(size_bytes: int) -> None:
    """A value of any size is put together again, part by part, and every part fits a frame."""
    blob = Blob.of(b"x" * size_bytes, "text/plain")
    sent: list[ContentPut | ContentPart] = [*puts(blob)]
    assert len(sent) == max(1, -(-size_bytes // CONTENT_PART_BYTES_MAX))
    for pieces in (sent, [*parts(blob)]):
        assembly = Assembly(pieces[0])
        results = [assembly.add(piece) for piece in pieces]
        assert results[:-1] == [None] * (len(pieces) - 1)
        assert results[-1] == blob
    for piece in puts(blob):
        runner.encode(piece)


@given(content=st.binary(max_size=64), cuts=st.lists(st.integers(0, 64), max_size=4))
def test_parts_may_be_of_any_size(content: bytes, cuts: list[int]) -> None:
    """Where a value is cut does not matter, as long as no part is empty."""
    blob = Blob.of(content, "text/plain")
    bounds = sorted({0, len(content), *(cut for cut in cuts if cut < len(content))})
    pieces = [_part(blob, start, content[start:end]) for start, end in pairwise(bounds)] or [
        _part(blob, 0, b"")
    ]
    assembly = Assembly(pieces[0])
    assert [assembly.add(piece) for piece in pieces][-1] == blob


def _refused(assembly: Assembly, part: ContentPart) -> None:
    """Check that a part does not fit."""
    with pytest.raises(ProtocolViolation) as violation:
        assembly.add(part)
    assert violation.value.reason_code == "contentMismatch"


def test_parts_that_do_not_fit_are_refused() -> None:
    """A gap, a repeat, another value, an excess, no base64 and an empty part are violations."""
    blob, other = Blob.of(b"abcdef", "text/plain"), Blob.of(b"uvwxyz", "text/plain")
    first = _part(blob, 0, b"abc")
    for second in (
        _part(blob, 4, b"ef"),
        _part(blob, 0, b"abc"),
        _part(other, 3, b"xyz"),
        _part(blob, 3, b"defg"),
        _part(blob, 3, b""),
        _part(blob, 3, b"def").model_copy(update={"data": "ZGVm!"}),
        _part(blob, 3, b"def").model_copy(update={"data": "ZGV"}),
        _part(blob, 3, b"def").model_copy(update={"data": "ZGVé"}),
        _part(blob, 3, b"def").model_copy(update={"media_type": "application/json"}),
        _part(blob, 3, b"def").model_copy(update={"content_bytes": 7}),
        _part(blob, 3, b"deg"),
    ):
        assembly = Assembly(first)
        assert assembly.add(first) is None
        _refused(assembly, second)


def test_a_part_over_its_limit_is_refused() -> None:
    """A part holds at most 512 KiB before base64."""
    blob = Blob.of(b"x" * (CONTENT_PART_BYTES_MAX + 1), "text/plain")
    part = _part(blob, 0, blob.content)
    _refused(Assembly(part), part)


def test_small_json_is_inline() -> None:
    """JSON up to 16 KiB travels in the frame; text and anything larger is named."""
    small = Blob.json("x" * (INLINE_BYTES_MAX - 2))
    large = Blob.json("x" * (INLINE_BYTES_MAX - 1))
    assert isinstance(ref(small), JsonRef)
    assert ref(large) == BlobRef.of(large)
    assert isinstance(ref(large, inline_bytes_max=2 * INLINE_BYTES_MAX), JsonRef)
    assert ref(Blob.text("x")) == BlobRef.of(Blob.text("x"))


def test_an_inline_value_is_read_back_as_its_blob() -> None:
    """What was inlined from stored bytes gives the same blob, and one over the bound is refused."""
    blob = Blob.json({"a": [1, None]})
    inline = ref(blob)
    assert isinstance(inline, JsonRef)
    received = JsonRef.parse(canonical.decode(canonical.encode({"json": inline.value})))
    assert received.blob() == inline.blob() == blob
    with pytest.raises(LimitExceeded) as refused:
        JsonRef(value="x" * INLINE_BYTES_MAX).blob()
    assert refused.value.reason_code == "inlineTooLarge"
