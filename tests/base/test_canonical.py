"""Canonical JSON: equal values have equal bytes; what readers could take differently is refused."""

from __future__ import annotations

import json
import math
import random
import shutil
import struct
import subprocess
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base.canonical import (
    Json,
    decode,
    decode_canonical,
    encode,
    encode_each,
    fragment,
    utf8,
)
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import FIELD_CHARS_MAX, FRAME_DEPTH_MAX, VALUE_DEPTH_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

LONE = "\ud800"
_SAFE = 2**53 - 1


def _exact(value: int) -> bool:
    """Say whether every reader of JSON has this integer exactly."""
    return -_SAFE <= value <= _SAFE or int(float(value)) == value


# Text that reaches both sides of the surrogates, where UTF-8 and UTF-16 order differ.
_TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text(
    "a\ud7ff\ue000\uffff\U00010000\U0010ffff", max_size=4
)
_NUMBERS = st.integers(-(2**70), 2**70).filter(_exact) | st.floats(
    allow_nan=False, allow_infinity=False
)


def _values(
    numbers: st.SearchStrategy[int] | st.SearchStrategy[float],
) -> st.SearchStrategy[Json]:
    """Return JSON values with such numbers in them."""
    scalars: st.SearchStrategy[Json] = st.none() | st.booleans() | numbers | _TEXTS

    def containers(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
        """Return arrays and objects of these values."""
        return st.lists(inner, max_size=5) | st.dictionaries(_TEXTS, inner, max_size=5)

    return st.recursive(scalars, containers, max_leaves=20)


def _nested(depth: int) -> Json:
    """Return an array that holds an array that holds..., this many in all."""
    value: Json = []
    for _ in range(depth - 1):
        value = [value]
    return value


def _shuffled(value: Json, chance: random.Random) -> Json:
    """Return an equal value whose objects list their members in another order."""
    if isinstance(value, list):
        return [_shuffled(item, chance) for item in value]
    if isinstance(value, dict):
        members = list(value.items())
        chance.shuffle(members)
        return {key: _shuffled(item, chance) for key, item in members}
    return value


def _same(left: Json, right: Json) -> bool:
    """Say whether two values are equal, taking True for True and not for 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and left == right


def _refusal(call: Callable[[], object]) -> tuple[str, str | None]:
    """Return the code and the path of the refusal that a call must end in."""
    with pytest.raises(PayloadInvalid) as caught:
        call()
    assert caught.value.field is not None
    assert caught.value.message.startswith(f"{caught.value.field}: ")
    assert "\n" not in caught.value.message
    utf8(caught.value.message)
    return caught.value.reason_code, caught.value.field


_VECTORS: list[tuple[Json, str]] = [
    (None, "null"),
    (True, "true"),
    (False, "false"),
    (0, "0"),
    (-7, "-7"),
    (1.0, "1"),
    (-0.0, "0"),
    (0.05, "0.05"),
    (-12.5, "-12.5"),
    (1e-6, "0.000001"),
    (1e-7, "1e-7"),
    (1.5e-7, "1.5e-7"),
    (123e-20, "1.23e-18"),
    (1e16, "10000000000000000"),
    (1e20, "100000000000000000000"),
    (1e21, "1e+21"),
    (1.25e21, "1.25e+21"),
    (123456789012345680000.0, "123456789012345680000"),
    (5e-324, "5e-324"),
    (1.7976931348623157e308, "1.7976931348623157e+308"),
    (_SAFE, "9007199254740991"),
    (2**53, "9007199254740992"),
    # The shortest digits of this double, filled up with zeros, are not its exact value.
    (23519357842235008, "23519357842235010"),
    (-23519357842235008.0, "-23519357842235010"),
    (10**21, "1e+21"),
    (-(2**64), "-18446744073709552000"),
    ("", '""'),
    ('"\\/\b\f\n\r\t\x00\x1f', r'"\"\\/\b\f\n\r\t\u0000\u001f"'),
    ("\x7f\u2028é\U0001f600", '"\x7f\u2028é\U0001f600"'),
    ([], "[]"),
    ({}, "{}"),
    ([1, [2], {}], "[1,[2],{}]"),
    ({"10": 1, "9": 2, "a": 3, "A": 4}, '{"10":1,"9":2,"A":4,"a":3}'),
    ({"\ue000": 1, "\U00010000": 2}, '{"\U00010000":2,"\ue000":1}'),
    ({"b": {"d": 0.5, "c": None}, "a": []}, '{"a":[],"b":{"c":null,"d":0.5}}'),
]


@pytest.mark.parametrize(("value", "text"), _VECTORS)
def test_a_value_has_one_text(value: Json, text: str) -> None:
    """Each vector has exactly this text, alone and beside a fraction, and is read back from it."""
    assert encode(value) == text.encode()
    # A fraction anywhere keeps the whole value from the fast path.
    assert encode([value, 0.5]) == f"[{text},0.5]".encode()
    assert decode_canonical(text.encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        "1e+20",
        "1.0",
        "1E+21",
        "1e21",
        "-0",
        "0.10",
        "1e-07",
        "18446744073709551616",
        " 1",
        "1 ",
        "[1, 2]",
        '{"a": 1}',
        '{"b":1,"a":2}',
        '{"\ue000":1,"\U00010000":2}',
        '"\\/"',
        '"\\u00e9"',
        '"\\u001F"',
        '"\\u000a"',
        '"\\ud83d\\ude00"',
    ],
)
def test_other_texts_of_a_value_are_not_canonical(text: str) -> None:
    """Another text than the one its value has is read, but not where canonical form is required."""
    assert encode(decode(text.encode())) != text.encode()
    assert _refusal(lambda: decode_canonical(text.encode())) == (
        "notCanonical",
        "frame",
    )


@pytest.mark.parametrize(
    ("value", "code", "path"),
    [
        (math.nan, "numberNotFinite", "value"),
        ([0, math.inf], "numberNotFinite", "value[1]"),
        ({"a": [{"b": -math.inf}]}, "numberNotFinite", "value.a[0].b"),
        ({"n": 2**53 + 1}, "numberInexact", "value.n"),
        ([-(2**53) - 1], "numberInexact", "value[0]"),
        ([2**64 + 1], "numberInexact", "value[0]"),
        ([10**400], "numberInexact", "value[0]"),
        ({"name": LONE}, "loneSurrogate", "value.name"),
        ({"name": ["ok", "\udfff"]}, "loneSurrogate", "value.name[1]"),
        ({LONE: 1}, "loneSurrogate", 'value["\\ud800"]'),
        ({"a b": {"": "\udc00"}}, "loneSurrogate", 'value["a b"][""]'),
        ((1, 2), "notJson", "value"),
        ({"a": {1, 2}}, "notJson", "value.a"),
        ([b"x"], "notJson", "value[0]"),
        ([object()], "notJson", "value[0]"),
        ({1: 2}, "keyNotText", "value"),
        ({"a": {None: 1}}, "keyNotText", "value.a"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(
    value: object, code: str, path: str
) -> None:
    """A value that other readers would change is refused, and the refusal names where it stands."""
    assert _refusal(lambda: encode(cast("Json", value))) == (code, path)


@pytest.mark.parametrize(
    ("data", "code", "path"),
    [
        (b'{"a":1,"a":1}', "duplicateKey", "input.a"),
        (b'[{"x":{"a":1,"b":2,"\\u0061":1}}]', "duplicateKey", "input[0].x.a"),
        (b'{"a":{"b":1,"b":2},"a":{}}', "duplicateKey", "input.a"),
        (b"[NaN]", "numberNotFinite", "input[0]"),
        (b'{"a":-Infinity}', "numberNotFinite", "input.a"),
        (b"1e400", "numberNotFinite", "input"),
        (b"[9007199254740993]", "numberInexact", "input[0]"),
        (b"[18446744073709551617]", "numberInexact", "input[0]"),
        (b"[23519357842235011]", "numberInexact", "input[0]"),
        (b"[" + b"9" * 5_000 + b"]", "numberInexact", "input[0]"),
        (b'{"items":[0,{"name":"\\ud800"}]}', "loneSurrogate", "input.items[1].name"),
        (b'{"\\udc00":1}', "loneSurrogate", 'input["\\udc00"]'),
        (b'"\\ud800\\ud800"', "loneSurrogate", "input"),
        (b'"\xed\xa0\x80"', "notUtf8", "input"),
        (b'"\xff"', "notUtf8", "input"),
        (b'"\xc0\xaf"', "notUtf8", "input"),
        (b"\xef\xbb\xbf1", "notJson", "input"),
        (b"1\x00", "notJson", "input"),
        (b"1 2", "notJson", "input"),
        (b"{}{}", "notJson", "input"),
        (b"", "notJson", "input"),
        (b"  ", "notJson", "input"),
        (b'{"a":1,}', "notJson", "input"),
        (b"[01]", "notJson", "input"),
        (b"[.5]", "notJson", "input"),
        (b"{'a':1}", "notJson", "input"),
        (b'"\x1f"', "notJson", "input"),
        (b'"\\x41"', "notJson", "input"),
        (b"\xa01", "notUtf8", "input"),
        ("\u00a01".encode(), "notJson", "input"),
        ("\u0661".encode(), "notJson", "input"),
    ],
)
def test_text_that_readers_take_differently_is_refused(data: bytes, code: str, path: str) -> None:
    """Reading refuses duplicate keys, numbers out of range, half surrogate pairs and no JSON."""
    assert _refusal(lambda: decode(data, field="input")) == (code, path)
    assert _refusal(lambda: decode_canonical(data, field="input")) == (code, path)


@pytest.mark.parametrize("depth_max", [1, 2, VALUE_DEPTH_MAX, FRAME_DEPTH_MAX])
@pytest.mark.parametrize("tail", [[], [0.5]])
def test_the_deepest_value_is_taken_and_one_level_more_is_not(
    depth_max: int, tail: list[Json]
) -> None:
    """Depth counts arrays and objects, the same on both paths and in both directions."""
    deepest = _nested(depth_max)
    assert isinstance(deepest, list)
    deepest.extend(tail)
    data = encode(deepest, depth_max=depth_max)
    assert decode(data, depth_max=depth_max) == deepest
    assert decode_canonical(data, depth_max=depth_max) == deepest

    beyond = b"[" + data + b"]"
    path = "value" + "[0]" * depth_max
    for call in (
        lambda: encode([deepest], depth_max=depth_max),
        lambda: decode(beyond, depth_max=depth_max),
        lambda: decode_canonical(beyond, depth_max=depth_max, field="value"),
    ):
        code, field = _refusal(call)
        assert code == "valueTooDeep"
        assert field is not None
        assert field == path or len(field) <= FIELD_CHARS_MAX < len(path)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_bottomless_nesting_is_refused(opening: bytes) -> None:
    """A frame full of opening brackets ends in a refusal, not in the parser's own limits."""
    closing = b"]" if opening == b"[" else b"}"
    bottomless = opening * 200_000 + b"1" + closing * 200_000
    for read in (decode, decode_canonical):
        with pytest.raises(PayloadInvalid) as caught:
            read(bottomless)
        assert caught.value.reason_code == "valueTooDeep"


def test_a_value_that_holds_itself_is_refused() -> None:
    """A cycle is nesting without end, even where every level doubles it."""
    cycle: list[Json] = []
    cycle.extend((cycle, cycle))
    code, _ = _refusal(lambda: encode(cycle))
    assert code == "valueTooDeep"


def test_a_key_twice_among_many_is_found() -> None:
    """One duplicate among very many keys is found without comparing each with each."""
    members = ",".join(f'"k{index}":0' for index in range(100_000))
    data = f'{{{members},"k77":1}}'.encode()
    assert _refusal(lambda: decode(data)) == ("duplicateKey", "value.k77")


def test_a_long_path_keeps_both_ends() -> None:
    """The path in an error is bounded and still starts with the field and ends at the member."""
    value: Json = {"last": LONE}
    for _ in range(50):
        value = {"a-rather-long-name": value}
    code, field = _refusal(lambda: encode(value, field="input"))
    assert code == "loneSurrogate"
    assert field is not None
    assert len(field) <= FIELD_CHARS_MAX
    assert field.startswith("input.a-rather-long-name.")
    assert field.endswith(".last")


def test_utf8_refuses_half_a_surrogate_pair() -> None:
    """Text becomes UTF-8 or a refusal that names the field."""
    assert utf8("é\U0001f600") == "é\U0001f600".encode()
    assert _refusal(lambda: utf8(f"a{LONE}", field="title")) == (
        "loneSurrogate",
        "title",
    )


@pytest.mark.parametrize("beside", [0, 0.5])
def test_a_fragment_is_copied(beside: Json) -> None:
    """Stored canonical bytes stand in a larger value as they are, whichever path writes it."""
    stored = encode({"b": [0.25, "\ue000"], "a": None})
    whole = encode({"z": fragment(stored), "a": [fragment(stored), beside]})
    assert whole == b'{"a":[' + stored + b"," + encode(beside) + b'],"z":' + stored + b"}"
    assert encode(fragment(stored)) == stored


@given(st.lists(_values(_NUMBERS) | st.sampled_from(["\n", ",\n,", "\\n"]), max_size=6))
def test_values_written_together_are_those_written_alone(values: list[Json]) -> None:
    """Line feeds in them, fragments, floats and keys of any kind change nothing."""
    alone = [encode(value) for value in values]
    assert encode_each(values) == alone
    assert encode_each([fragment(data) for data in alone]) == alone


def test_a_refusal_among_many_values_names_its_path() -> None:
    """One value that cannot be written refuses all of them."""
    with pytest.raises(PayloadInvalid) as refusal:
        encode_each([1, {"a": [LONE]}])
    assert (refusal.value.reason_code, refusal.value.field) == ("loneSurrogate", "value.a[0]")


@given(_values(_NUMBERS))
def test_what_is_written_is_read_back(value: Json) -> None:
    """Every value survives its canonical text, which both readers accept."""
    data = encode(value)
    assert _same(decode(data), value)
    assert _same(decode_canonical(data), value)
    assert encode(decode(data)) == data


@given(_values(st.integers(-(2**64), 2**64).filter(_exact)))
def test_both_paths_write_the_same(value: Json) -> None:
    """A value has the same bytes as when a fraction beside it keeps it from the fast path."""
    assert encode([value, 0.5]) == b"[" + encode(value) + b",0.5]"


@given(_values(_NUMBERS), st.randoms(use_true_random=False))
def test_the_order_of_members_does_not_matter(value: Json, chance: random.Random) -> None:
    """Equal values have equal bytes."""
    assert encode(_shuffled(value, chance)) == encode(value)


@given(st.dictionaries(_TEXTS, st.sampled_from([0, 0.5]), min_size=2))
def test_keys_ascend_by_utf16(members: dict[str, Json]) -> None:
    """Keys stand in the order of their UTF-16 code units."""
    written = json.loads(encode(members), object_pairs_hook=lambda pairs: [key for key, _ in pairs])
    assert written == sorted(members, key=lambda key: key.encode("utf-16-be"))


@given(_values(_NUMBERS))
def test_only_the_canonical_text_is_accepted(value: Json) -> None:
    """Python's own text of a value is read, and is no frame unless it is the canonical one."""
    loose = json.dumps(value).encode()
    assert _same(decode(loose), value)
    if loose == encode(value):
        assert _same(decode_canonical(loose), value)
    else:
        assert _refusal(lambda: decode_canonical(loose)) == ("notCanonical", "frame")


@given(
    st.binary(max_size=60)
    | st.text('{}[]",:.-+e0123456789\\utrnfalse ', max_size=30).map(str.encode)
)
def test_reading_any_bytes_ends_in_a_value_or_a_refusal(data: bytes) -> None:
    """No bytes make a reader fail otherwise, and a frame is always readable as a value."""
    try:
        value = decode(data)
    except PayloadInvalid:
        with pytest.raises(PayloadInvalid):
            decode_canonical(data)
    else:
        assert _same(decode_canonical(encode(value)), value)


def _doubles(count: int) -> list[float]:
    """Return doubles of every magnitude, and those where the layout of their text changes."""
    chance = random.Random(20)  # noqa: S311 - a fixed sample, not a secret
    found: list[float] = []
    while len(found) < count:
        (value,) = struct.unpack("<d", chance.randbytes(8))
        if math.isfinite(value):
            found.append(value)
    for exponent in range(-30, 31):
        for digits in (1.0, 1.5, 9.999999999999999, 1.2345678901234567):
            found.extend((digits * 10.0**exponent, -digits * 10.0**exponent))
    found.extend(
        math.nextafter(edge, way) for edge in (1e-6, 1e-7, 1e21, 2.0**53) for way in (0.0, math.inf)
    )
    return found


_NODE_PROGRAM = """
const write = (value) => {
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const keys = Object.keys(value).sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${write(value[key])}`).join(",")}}`;
};
let text = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (part) => { text += part; });
process.stdin.on("end", () => { process.stdout.write(write(JSON.parse(text))); });
"""


@pytest.mark.slow
def test_another_engine_writes_the_same() -> None:
    """Node, whose number text is the standard's own, writes doubles, texts and keys the same."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed: the vectors above stand alone")
    value: Json = {
        "doubles": [*_doubles(20_000)],
        "keys": dict.fromkeys(("10", "9", "é", "\ue000", "\uffff", "𐀀", "", "a", "A"), 0),
        "texts": [
            chr(point)
            for point in (
                *range(0x100),
                0x2028,
                0x2029,
                0xD7FF,
                0xE000,
                0xFFFF,
                0x10FFFF,
            )
        ],
    }
    answer = subprocess.run(
        [node, "-e", _NODE_PROGRAM],
        input=json.dumps(value).encode(),
        capture_output=True,
        check=True,
    )
    assert answer.stdout == encode(value)
