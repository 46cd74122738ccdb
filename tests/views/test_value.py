"""Stored values in documents: themselves, marked, or by reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import INLINE_BYTES_MAX, VALUE_DEPTH_MAX
from pi_workflows.protocol.artifact import plain
from pi_workflows.views.value import Value, embed, embedded, escaped, parse_path
from tests.kernel.harness import Harness

_KEYS = st.sampled_from(["$artifact", "$escaped", "a", "b"])
_VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.sampled_from(["", "$artifact", '"$escaped":']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=2),
    max_leaves=8,
)


def stored(blob: Blob) -> Value:
    """Return a value with its content, as a row brings it along."""
    return Value(blob.digest, blob.media_type, len(blob.content), blob.content)


def shown(bench: Harness, blob: Blob, bytes_max: int = INLINE_BYTES_MAX) -> Json:
    """Return what stands in a document for a value."""
    with bench.store.snapshot() as read:
        return canonical.decode(embed(read, stored(blob), bytes_max))


def test_a_small_value_stands_in_the_document_unparsed(bench: Harness) -> None:
    """Up to 16 KiB the stored bytes are copied; text becomes a JSON string; no value is null."""
    blob = Blob.json({"b": [1, 2.5], "a": None})
    with bench.store.snapshot() as read:
        assert embed(read, stored(blob)) is blob.content
        assert embedded(read, None) is None
    assert shown(bench, Blob.text('say "é"\n')) == 'say "é"\n'


def test_a_value_over_its_bound_is_a_reference(bench: Harness) -> None:
    """One byte over 16 KiB the document names path, media type, size and digest instead."""
    longest = Blob.json("x" * (INLINE_BYTES_MAX - 2))
    assert shown(bench, longest) == "x" * (INLINE_BYTES_MAX - 2)
    blob = Blob.json("x" * (INLINE_BYTES_MAX - 1))
    reference = {
        "path": f"artifacts/sha256/{blob.hex}.json",
        "mediaType": "application/json",
        "bytes": INLINE_BYTES_MAX + 1,
        "sha256": blob.hex,
        "opaque": True,
    }
    assert shown(bench, blob) == {"$artifact": reference}
    # Text grows when it is quoted: the bound holds for what is sent.
    text = Blob.text('"' * (INLINE_BYTES_MAX - 10))
    found = shown(bench, text)
    assert isinstance(found, dict)
    assert list(found) == ["$artifact"]


def test_content_that_no_row_brought_is_read(bench: Harness) -> None:
    """A value without its content is read from the blobs when it is shown."""
    bench.launch(run_id="run-1")
    with bench.store.snapshot() as read:
        blob = Blob.json({"task": "check"})
        value = Value(blob.digest, blob.media_type, len(blob.content), None)
        assert embed(read, value) == blob.content


@given(_VALUES)
def test_a_readers_own_references_survive(value: Json) -> None:
    """Nothing that an author returned reads as a reference, and every client gets it back."""
    content = escaped(canonical.encode(value))
    assert content is not None
    sent = canonical.decode(content)
    assert plain(sent) == value
    for found in _objects(sent):
        assert list(found) != ["$artifact"] or id(found) in _under_marks(sent)


def test_only_an_object_with_that_one_member_is_marked() -> None:
    """A member of that name among others makes no reference, and the value is sent as it is."""
    for text in (b'{"$artifact":1,"b":2}', b'{"$artifact":1,"$escaped":2}', b'["$artifact"]'):
        assert escaped(text) == text
    assert escaped(b'[{"$artifact":1}]') == b'[{"$escaped":{"$artifact":1}}]'


def _objects(value: Json) -> list[dict[str, Json]]:
    """Return every object in a value."""
    if isinstance(value, list):
        return [found for item in value for found in _objects(item)]
    if isinstance(value, dict):
        return [value, *(found for item in value.values() for found in _objects(item))]
    return []


def _under_marks(value: Json) -> set[int]:
    """Return the objects that stand right under a mark."""
    return {id(found["$escaped"]) for found in _objects(value) if list(found) == ["$escaped"]}


def test_a_value_that_marks_would_nest_too_deep_is_a_reference(bench: Harness) -> None:
    """Marks double the depth of a value made of look-alikes; the frame would not take it."""
    value: Json = 1
    for _ in range(VALUE_DEPTH_MAX - 1):
        value = {"$artifact": value}
    blob = Blob.json(value)
    assert escaped(blob.content) is None
    found = shown(bench, blob)
    assert isinstance(found, dict)
    assert isinstance(reference := found["$artifact"], dict)
    assert reference["sha256"] == blob.hex


def test_the_path_of_a_reference_names_its_content() -> None:
    """Digest and media type can be read back from the path that was sent."""
    for blob in (Blob.json(1), Blob.text("x")):
        assert parse_path(stored(blob).path) == (blob.digest, blob.media_type)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "artifacts/sha256/",
        f"artifacts/sha256/{'a' * 63}.json",
        f"artifacts/sha256/{'A' * 64}.json",
        f"artifacts/sha256/{'a' * 64}.md",
        f"/artifacts/sha256/{'a' * 64}.json",
        f"artifacts/sha256/{'a' * 64}.json\n",
        str(Path("..") / "state.sqlite"),
    ],
)
def test_no_other_path_is_one(path: str) -> None:
    """A path of any other form is refused and named as the field at fault."""
    with pytest.raises(PayloadInvalid) as refusal:
        parse_path(path)
    assert refusal.value.field == "path"
