"""What an event's payload holds and names, read from its bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Corrupt
from pi_workflows.domain.events import EVENTS, decode, named_blobs
from pi_workflows.domain.fact import Event, ViewRef

DIGESTS = st.binary(min_size=32, max_size=32).map(bytes.hex)
# Text that looks as much like a name as text can.
PIECES = st.sampled_from(["_hash", '"', ":", "\\", '":"', "a", "é", "\n", "ab" * 32, "{", ","])
TEXTS = st.lists(PIECES, max_size=6).map("".join)
PLAIN = TEXTS | st.integers(0, 9) | st.none() | st.booleans()


def members(values: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    """Return objects whose text members that end as names do are digests."""
    others = st.dictionaries(TEXTS.filter(lambda key: not key.endswith("_hash")), values)
    named = st.dictionaries(TEXTS.map(lambda key: f"{key}_hash"), DIGESTS | st.none() | values)

    def joined(both: tuple[dict[str, Json], dict[str, Json]]) -> Json:
        left, right = both
        return left | {
            key: value
            for key, value in right.items()
            if not isinstance(value, str) or is_digest(value)
        }

    return st.tuples(others, named).map(joined)


def is_digest(text: str) -> bool:
    """Whether text is 32 bytes as hex."""
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def named(value: Json) -> Iterator[str]:
    """Yield every text member of a value whose name ends in `_hash`."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name.endswith("_hash") and isinstance(member, str):
                yield member
            else:
                yield from named(member)
    elif isinstance(value, list):
        for item in value:
            yield from named(item)


@example({"hash": "ab" * 32, "a_hash ": "ab" * 32, "_hash": "cd" * 32})
@given(st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | members(inner)))
def test_the_names_in_the_bytes_are_the_members_of_the_value(value: Json) -> None:
    """Whatever a payload holds, its bytes name the members that end so, and nothing else."""
    expected = tuple(sorted({bytes.fromhex(name) for name in named(value)}))
    assert named_blobs(canonical.encode(value)) == expected


@pytest.mark.parametrize("name", ["x", "0", 'ab"cd', "ab\\", "é" * 64])
def test_a_name_that_is_no_digest_is_refused(name: str) -> None:
    """A member that names nothing is damage, not an absent name."""
    with pytest.raises(ValueError):  # noqa: PT011 - the decoder's own text
        named_blobs(canonical.encode({"output_hash": name}))


def integers(schema: Json) -> Iterator[dict[str, Json]]:
    """Yield every integer of a JSON schema."""
    if isinstance(schema, dict):
        if schema.get("type") == "integer" and "const" not in schema:
            yield schema
        for part in schema.values():
            yield from integers(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from integers(part)


@pytest.mark.parametrize("kind", EVENTS.values(), ids=list(EVENTS))
def test_every_number_of_an_event_fits_a_column(kind: type[Event]) -> None:
    """No event has an integer of more than 64 bits: none of SQLite's columns would take it."""
    found = list(integers(kind.model_json_schema()))
    assert found
    assert {(each.get("minimum"), each.get("maximum")) for each in found} == {(-(2**63), 2**63 - 1)}


def test_a_number_that_fits_no_column_is_another_shape() -> None:
    """A forged payload is refused when it is read, and not by the database."""
    sound = b'{"mode":"start","run_id":"run-1","view":{"revision":7,"run_id":"run-1"}}'
    assert decode("lease.claimed", sound).view == ViewRef(run_id="run-1", revision=7)
    with pytest.raises(Corrupt) as caught:
        decode("lease.claimed", sound.replace(b"7", str(2**63).encode()))
    assert caught.value.reason_code == "eventShape"
