"""Frames: what a stream of bytes is split into, and what closes a connection."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base import canonical
from pi_workflows.base.errors import LimitExceeded, PayloadInvalid, ProtocolViolation
from pi_workflows.base.limits import FRAME_BYTES_MAX, FRAME_DEPTH_MAX
from pi_workflows.protocol import frames
from pi_workflows.protocol.frames import FrameReader

_SMALL = b'{"a":1}'


def _contents(reader: FrameReader, data: bytes) -> list[bytes]:
    """Feed a reader and return the contents of the frames that are complete."""
    return [frame.content for frame in reader.feed(data)]


def _sized(size_bytes: int) -> bytes:
    """Return a frame of exactly that size, its line feed included."""
    return b'{"a":"' + b"x" * (size_bytes - len(b'{"a":""}\n')) + b'"}\n'


def test_a_frame_comes_out_as_it_went_in() -> None:
    """A frame is its object in canonical form and a line feed."""
    written = frames.encode({"b": [1, None], "a": "é"})
    [frame] = FrameReader().feed(written)
    assert written == '{"a":"é","b":[1,null]}\n'.encode()
    assert frame.content == written[:-1]
    assert frame.value == {"a": "é", "b": [1, None]}


def test_equal_frames_have_one_digest() -> None:
    """A frame's digest is over its content, so that a repeated proposal is recognized."""
    first, second, other = FrameReader().feed(b'{"a":1}\n{"a":1}\n{"a":2}\n')
    assert first.digest == second.digest != other.digest


def test_stored_bytes_stand_in_a_frame() -> None:
    """Canonical bytes are embedded as they are, without being parsed."""
    stored = canonical.encode({"z": [1.5, {"y": "ü"}]})
    written = frames.encode({"receipt": canonical.fragment(stored)})
    assert written == b'{"receipt":' + stored + b"}\n"


def test_a_stream_may_be_split_anywhere() -> None:
    """Frames do not depend on how the stream was cut: every single cut gives the same frames."""
    stream = b'{"a":1}\n' + '{"ä":"\\n"}\n'.encode() + b'\n{"b":[]}\n'
    whole = _contents(FrameReader(), stream)
    assert whole == [b'{"a":1}', '{"ä":"\\n"}'.encode(), b'{"b":[]}']
    for cut in range(len(stream) + 1):
        reader = FrameReader()
        assert _contents(reader, stream[:cut]) + _contents(reader, stream[cut:]) == whole
    reader = FrameReader()
    assert [content for byte in stream for content in _contents(reader, bytes([byte]))] == whole


def test_empty_lines_are_skipped() -> None:
    """A line feed by itself is no frame and no violation."""
    assert _contents(FrameReader(), b"\n\n" + _SMALL + b"\n\n\n") == [_SMALL]


def test_bytes_are_kept_when_nobody_takes_the_frames() -> None:
    """Feeding keeps the bytes even when the result is not looked at."""
    reader = FrameReader()
    reader.feed(_SMALL)
    assert _contents(reader, b"\n") == [_SMALL]


def test_the_largest_frame_is_accepted() -> None:
    """A frame of exactly 1 MiB with its line feed is good in both directions."""
    data = _sized(FRAME_BYTES_MAX)
    [frame] = FrameReader().feed(data)
    assert frames.encode(frame.value) == data


def test_a_frame_one_byte_over_is_refused() -> None:
    """A frame of 1 MiB and one byte is a violation to read, and refused before it is written."""
    data = _sized(FRAME_BYTES_MAX + 1)
    with pytest.raises(ProtocolViolation) as violation:
        _contents(FrameReader(), data)
    assert violation.value.reason_code == "frameTooLarge"
    with pytest.raises(LimitExceeded) as refused:
        frames.encode({"a": "x" * (FRAME_BYTES_MAX + 1 - len(b'{"a":""}\n'))})
    assert refused.value.reason_code == "frameTooLarge"


@pytest.mark.parametrize("chunk_bytes", [FRAME_BYTES_MAX + 1, 65_536, 4_099])
def test_a_line_that_never_ends_is_bounded(chunk_bytes: int) -> None:
    """More than the limit without a line feed is refused, however it arrives."""
    reader = FrameReader()
    left = FRAME_BYTES_MAX
    while left > chunk_bytes:
        assert _contents(reader, b"x" * chunk_bytes) == []
        left -= chunk_bytes
    assert chunk_bytes > left or _contents(reader, b"x" * left) == []
    with pytest.raises(ProtocolViolation) as violation:
        _contents(reader, b"x" * chunk_bytes)
    assert violation.value.reason_code == "frameTooLarge"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\xff{}", "notUtf8"),
        (b'{"a":"\xed\xa0\x80"}', "notUtf8"),
        (b"\xef\xbb\xbf{}", "notJson"),
        (b"{", "notJson"),
        (b"{}x", "notJson"),
        (b"{}{}", "notJson"),
        (b"{'a':1}", "notJson"),
        (b'{"a":1,}', "notJson"),
        (b'{"a":NaN}', "numberNotFinite"),
        (b'{"a":-Infinity}', "numberNotFinite"),
        (b'{"a":1e999}', "numberNotFinite"),
        (b'{"a":9007199254740993}', "numberInexact"),
        (b'{"a":"\\ud800"}', "loneSurrogate"),
        (b'{"a":1,"a":1}', "duplicateKey"),
        (b"[]", "notObject"),
        (b'"text"', "notObject"),
        (b"null", "notObject"),
        (b"17", "notObject"),
        (b'{"a": 1}', "notCanonical"),
        (b'{"b":1,"a":1}', "notCanonical"),
        (b'{"a":1.0}', "notCanonical"),
        (b'{"a":-0}', "notCanonical"),
        (b'{"a":1e+20}', "notCanonical"),
        (b'{"a":"\\u0041"}', "notCanonical"),
        (b'{"a":"\\/"}', "notCanonical"),
        (b"{}\r", "notCanonical"),
        ('{"\ue000":1,"\U00010000":1}'.encode(), "notCanonical"),
    ],
)
def test_what_is_not_canonical_json_is_a_violation(content: bytes, code: str) -> None:
    """Each way to be malformed has its code, and the words hold nothing of what was sent."""
    with pytest.raises(ProtocolViolation) as violation:
        _contents(FrameReader(), content + b"\n")
    assert violation.value.reason_code == code
    assert "\n" not in violation.value.message
    assert violation.value.field is None


def test_nesting_is_bounded() -> None:
    """128 levels are a frame, 129 and a hundred thousand are not."""
    deepest = b'{"a":' + b"[" * (FRAME_DEPTH_MAX - 1) + b"]" * (FRAME_DEPTH_MAX - 1) + b"}"
    assert _contents(FrameReader(), deepest + b"\n") == [deepest]
    for levels in (FRAME_DEPTH_MAX, 100_000):
        too_deep = b'{"a":' + b"[" * levels + b"]" * levels + b"}"
        with pytest.raises(ProtocolViolation) as violation:
            _contents(FrameReader(), too_deep + b"\n")
        assert violation.value.reason_code == "valueTooDeep"


def test_what_is_too_deep_is_not_written() -> None:
    """A sender learns of its own mistake before anything is sent."""
    value: canonical.Json = []
    for _ in range(FRAME_DEPTH_MAX):
        value = [value]
    with pytest.raises(PayloadInvalid):
        frames.encode({"a": value})


def test_frames_before_a_bad_one_are_good() -> None:
    """A violation stands in its place: what came before it was taken."""
    stream = FrameReader().feed(_SMALL + b"\n{}\n[]\n{}\n")
    assert next(stream).content == _SMALL
    assert next(stream).content == b"{}"
    with pytest.raises(ProtocolViolation):
        next(stream)


@pytest.mark.parametrize("rest", [b"{", b'{"a":1}', b"\xff"])
def test_a_stream_that_ends_inside_a_frame_is_cut(rest: bytes) -> None:
    """The end of the stream is good between frames only."""
    reader = FrameReader()
    assert _contents(reader, _SMALL + b"\n") == [_SMALL]
    reader.end()
    assert _contents(reader, rest) == []
    with pytest.raises(ProtocolViolation) as violation:
        reader.end()
    assert violation.value.reason_code == "frameTruncated"


def test_a_frame_of_another_protocol_is_refused() -> None:
    """The schema is the first thing that is looked at."""
    frame = frames.decode(b'{"schema":"a.v1","type":"x"}')
    assert frame.body("a.v1") == {"type": "x"}
    for other in (frame, frames.decode(b"{}"), frames.decode(b'{"schema":["b.v1"]}')):
        with pytest.raises(ProtocolViolation) as violation:
            other.body("b.v1")
        assert violation.value.reason_code == "wrongSchema"


# One character of each kind that the encoder treats differently.
_texts = st.text('aé"\\\n\x00\x7f\u2028\ue000\U00010000', max_size=4)
_json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _texts,
    lambda children: st.lists(children, max_size=3) | st.dictionaries(_texts, children, max_size=3),
    max_leaves=4,
)
_objects = st.dictionaries(_texts, _json_values, max_size=3)


@pytest.mark.slow
@given(values=st.lists(_objects, max_size=3), data=st.data())
def test_any_objects_in_any_pieces_come_out_whole(
    values: list[dict[str, canonical.Json]], data: st.DataObject
) -> None:
    """Whatever is sent in whatever pieces, the same objects come out with the same bytes."""
    stream = b"".join(frames.encode(value) for value in values)
    reader = FrameReader()
    found: list[bytes] = []
    at = 0
    while at < len(stream):
        size = data.draw(st.integers(1, len(stream) - at))
        found += [frames.encode(frame.value) for frame in reader.feed(stream[at : at + size])]
        at += size
    reader.end()
    assert b"".join(found) == stream


@given(pieces=st.lists(st.binary(max_size=40) | st.sampled_from([_SMALL, b"\n", b"{}\n", b'{"a'])))
def test_any_bytes_give_frames_or_a_violation(pieces: list[bytes]) -> None:
    """Nothing that a peer sends raises anything else, and every frame is its own canonical form."""
    reader = FrameReader()
    try:
        for piece in pieces:
            for frame in reader.feed(piece):
                assert frames.encode(frame.value) == frame.content + b"\n"
        reader.end()
    except ProtocolViolation:
        pass


@given(at=st.integers(min_value=0), byte=st.integers(0, 255))
def test_a_changed_byte_gives_a_frame_or_a_violation(at: int, byte: int) -> None:
    """A valid frame with one byte changed is again canonical, or refused: never something else."""
    content = bytearray(b'{"a":[1,-0.5,"\xc3\xa9\\n",null],"b":{"c":true}}')
    content[at % len(content)] = byte
    try:
        found = list(FrameReader().feed(bytes(content) + b"\n"))
    except ProtocolViolation:
        return
    for frame in found:
        assert frames.encode(frame.value) == frame.content + b"\n"
