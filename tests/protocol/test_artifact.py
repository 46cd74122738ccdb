"""Values behind references: put together from parts, and believed only when all of it is right."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base import canonical
from pi_workflows.base.blob import MediaType
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.base.limits import CONTENT_CHUNK_BYTES_MAX
from pi_workflows.protocol.artifact import Artifact, Download, artifact_of, plain
from pi_workflows.protocol.views import ContentChunk, ViewContent

_RUN = "build-1"


def _artifact(content: bytes, media_type: MediaType = "application/json") -> Artifact:
    """Return what names a content."""
    digest = hashlib.sha256(content).hexdigest()
    extension = "json" if media_type == "application/json" else "txt"
    return Artifact(
        path=f"artifacts/sha256/{digest}.{extension}",
        media_type=media_type,
        content_bytes=len(content),
        sha256=digest,
        opaque=True,
    )


def _reference(artifact: Artifact) -> dict[str, Json]:
    """Return what stands in a view."""
    return {"$artifact": artifact.document()}


def _chunk(artifact: Artifact, content: bytes, offset: int, length: int) -> dict[str, Json]:
    """Return a part of a content."""
    piece = content[offset : offset + length]
    end = offset + len(piece)
    return ContentChunk(
        run_id=_RUN,
        path=artifact.path,
        media_type=artifact.media_type,
        content_bytes=artifact.content_bytes,
        sha256=artifact.sha256,
        offset=offset,
        next_offset=end,
        complete=end == artifact.content_bytes,
        data=base64.b64encode(piece).decode(),
    ).document()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
        max_leaves=20,
    ),
    st.integers(1, 40),
)
def test_a_value_comes_whole_in_any_parts(value: Json, length: int) -> None:
    """However it is cut, the parts are asked for in order and give the value."""
    content = canonical.encode(value)
    artifact = _artifact(content)
    download = Download(_RUN, _reference(artifact))
    offset = 0
    while (wanted := download.wanted) is not None:
        assert wanted == ViewContent(path=artifact.path, offset=offset)
        download.take(_chunk(artifact, content, offset, length))
        offset += length
    assert download.value == value


def test_text_is_text() -> None:
    """Content of text is no JSON, and may be empty."""
    for content in (b"", b"null", "\u00e9".encode()):
        artifact = _artifact(content, "text/plain")
        download = Download(_RUN, _reference(artifact))
        download.take(_chunk(artifact, content, 0, 10))
        assert (download.wanted, download.value) == (None, content.decode())


def test_content_is_never_searched_for_references() -> None:
    """What was stored may look like a reference, and is given as it is."""
    value: Json = {"$artifact": {"path": "x"}, "$escaped": {"$escaped": {}}}
    content = canonical.encode(value)
    artifact = _artifact(content)
    download = Download(_RUN, _reference(artifact))
    download.take(_chunk(artifact, content, 0, 10_000))
    assert download.value == value


def test_a_value_that_is_there_wants_nothing() -> None:
    """A value of the view itself loses its marks, and is not fetched."""
    beside: Json = {"$artifact": 1, "more": 2}
    value: Json = [{"$escaped": {"$artifact": {"path": "x"}}}, beside]
    download = Download(_RUN, value)
    assert download.wanted is None
    assert download.value == plain(value) == [{"$artifact": {"path": "x"}}, beside]


def test_a_broken_reference_is_refused() -> None:
    """A reference names one content in one way."""
    good = _artifact(b"[]").document()
    assert artifact_of({"$artifact": good}) is not None
    assert artifact_of({"$artifact": good, "more": 1}) is None
    broken: list[Json] = [
        None,
        {},
        {**good, "more": 1},
        {**good, "opaque": False},
        {**good, "bytes": -1},
        {**good, "sha256": "0" * 64},
        {**good, "mediaType": "text/plain"},
        {**good, "path": "/etc/passwd"},
    ]
    for reference in broken:
        with pytest.raises(ProtocolViolation) as violation:
            Download(_RUN, {"$artifact": reference})
        assert violation.value.reason_code == "contentMismatch"


@pytest.mark.parametrize(
    "change",
    [
        {"runId": "other"},
        {"path": f"artifacts/sha256/{'0' * 64}.json"},
        {"mediaType": "text/plain"},
        {"bytes": 13},
        {"sha256": "0" * 64},
        {"offset": 1},
        {"nextOffset": 3},
        {"complete": True},
        {"complete": "no"},
        {"data": "!"},
        {"data": ""},
        {"data": base64.b64encode(b"x" * 13).decode(), "nextOffset": 13},
        {"schema": "x"},
    ],
)
def test_a_part_that_does_not_fit_is_refused(change: dict[str, Json]) -> None:
    """Another run, content, place or size, no base64, nothing at all: the value is not believed."""
    content = b'["0123456"]\n'
    artifact = _artifact(content)
    download = Download(_RUN, _reference(artifact))
    with pytest.raises(ProtocolViolation) as violation:
        download.take({**_chunk(artifact, content, 0, 4), **change})
    assert violation.value.reason_code == "contentMismatch"
    assert download.wanted == ViewContent(path=artifact.path, offset=0)


@pytest.mark.parametrize(
    ("named", "sent", "media_type"),
    [
        (b"[1]", b"[2]", "application/json"),
        (b"[1,", b"[1,", "application/json"),
        (b"\xff\xff", b"\xff\xff", "text/plain"),
    ],
)
def test_a_whole_that_is_wrong_is_refused(named: bytes, sent: bytes, media_type: MediaType) -> None:
    """Another digest, no JSON, no UTF-8: the last part is refused."""
    artifact = _artifact(named, media_type)
    download = Download(_RUN, _reference(artifact))
    with pytest.raises(ProtocolViolation):
        download.take(_chunk(artifact, sent, 0, 100))
    assert download.wanted is not None


def test_a_part_is_bounded() -> None:
    """A chunk over its limit is refused."""
    content = canonical.encode("x" * CONTENT_CHUNK_BYTES_MAX)
    artifact = _artifact(content)
    with pytest.raises(ProtocolViolation):
        Download(_RUN, _reference(artifact)).take(_chunk(artifact, content, 0, len(content)))
    halves = Download(_RUN, _reference(artifact))
    halves.take(_chunk(artifact, content, 0, CONTENT_CHUNK_BYTES_MAX))
    halves.take(_chunk(artifact, content, CONTENT_CHUNK_BYTES_MAX, 2))
    assert halves.wanted is None
