r"""Canonical JSON: the one encoder and the one decoder, so that equal values have equal bytes.

The rules are those of the client protocol, "Canonical JSON": keys ascend by UTF-16 code unit, no
white space, the shortest escapes, numbers in ECMAScript's text, nothing that another reader would
take differently. Digests, fingerprints and the frame check (`canonical(parse(bytes)) == bytes`)
stand on it.

Two paths lead to the same bytes. orjson writes values without floats whose keys lie below U+D800,
where its order and its text are ours; everything else is written here. Refusals always come from
the path here, which knows where in the value it stands:

>>> encode({"b": 1.0, "a": "\u00e9"}).decode()
'{"a":"é","b":1}'
>>> encode({"items": [0, float("nan")]}, field="input")
Traceback (most recent call last):
pi_workflows.base.errors.PayloadInvalid: input.items[1]: a number must be finite
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import chain, repeat
from json.encoder import encode_basestring
from typing import TypeAlias, cast

import orjson

from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import FIELD_CHARS_MAX, FRAME_DEPTH_MAX, VALUE_DEPTH_MAX

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

_SAFE_INTEGER = 2**53 - 1
# From here on ECMAScript writes an exponent, as it does at _PLAIN_EXPONENT_MIN and below.
_PLAIN_EXPONENT_MAX = 21
_PLAIN_EXPONENT_MIN = -6
# More digits than any double has before its point: such a literal is no double, and int() is
# quadratic in it.
_INTEGER_DIGITS_MAX = 320
# Code points order as UTF-16 code units as long as none stands above the last one before the
# surrogates.
_UTF16_ORDER_MAX = "\ud7ff"
# A list that holds itself twice doubles with each level; the other path meets its depth first.
_LEVEL_ITEMS_MAX = 2**20
_NOT_FINITE = "a number must be finite"
_INEXACT = "an integer beyond 2^53-1 must be exactly a double"
_PLAIN_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_PLAIN_SCALARS = frozenset({str, int, bool, type(None), orjson.Fragment})
_PLAIN_TYPES = _PLAIN_SCALARS | {dict, list}
_PLAIN_KEYS = frozenset({str})
# Stands between values that are written together: no canonical form holds a line feed.
_MARK = orjson.Fragment(b"\n")
_FAST = orjson.OPT_SORT_KEYS | orjson.OPT_STRICT_INTEGER


class _Fault(Exception):
    """A value cannot be written; each enclosing array or object adds its step to the path."""

    def __init__(self, code: str, message: str, *steps: str | int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.steps = list(steps)

    def refusal(self, field: str) -> PayloadInvalid:
        """Return what the caller sees: the path from the field on, and what is wrong there."""
        path = _path_text(field, self.steps[::-1])
        return PayloadInvalid(f"{path}: {self.message}", code=self.code, field=path)


@dataclass(frozen=True, slots=True)
class _Flaw:
    """Stands in a parsed value where the text held something that JSON values cannot."""

    code: str
    message: str
    member: str | None = None


def encode(value: Json, *, depth_max: int = VALUE_DEPTH_MAX, field: str = "value") -> bytes:
    """Write a value in its canonical form.

    Args:
        value: The value; a `fragment` may stand in it. Tuples, sets, dates, bytes and models are
            refused.
        depth_max: How many arrays and objects may enclose one another.
        field: What people call the value; the paths of errors start with it.

    Returns:
        The bytes, in UTF-8.

    Raises:
        PayloadInvalid: With the path of the part at fault and one of the codes `notJson`,
            `keyNotText`, `valueTooDeep`, `loneSurrogate`, `numberNotFinite`, `numberInexact`.
    """
    if _is_plain(value, depth_max):
        try:
            return orjson.dumps(value, option=_FAST)
        except TypeError:
            pass  # an integer over 53 bits or half a surrogate pair: the path below tells where
    out: list[str] = []
    try:
        _write(value, depth_max, out)
    except _Fault as fault:
        raise fault.refusal(field) from None
    return "".join(out).encode()


def encode_each(values: list[Json], *, depth_max: int = VALUE_DEPTH_MAX) -> list[bytes]:
    """Write many values, each in its canonical form, for little more than one.

    Args:
        values: The values, as `encode` takes them.
        depth_max: As `encode`.

    Returns:
        The bytes of each, in order.

    Raises:
        PayloadInvalid: As `encode`.
    """
    if _is_plain(values, depth_max + 1):
        marked = list(chain.from_iterable(zip(values, repeat(_MARK))))
        try:
            return orjson.dumps(marked, option=_FAST)[1:-3].split(b",\n,") if marked else []
        except TypeError:
            pass
    return [encode(value, depth_max=depth_max) for value in values]


def decode(data: bytes, *, depth_max: int = VALUE_DEPTH_MAX, field: str = "value") -> Json:
    """Read JSON text strictly: what two readers could take differently is refused.

    Args:
        data: The text, UTF-8 without a byte order mark. It need not be canonical.
        depth_max: How many arrays and objects may enclose one another.
        field: What people call the value; the paths of errors start with it.

    Returns:
        The value. A literal without fraction and exponent is an int, save where it is the text of a
        double whose exact value is another one (`23519357842235010` is how ECMAScript writes
        23519357842235008).

    Raises:
        PayloadInvalid: The codes of `encode`, and `notUtf8`, `notJson` (also for text after the
            value) and `duplicateKey`.
    """
    return _parse(data, depth_max, field)[0]


def decode_canonical(
    data: bytes, *, depth_max: int = FRAME_DEPTH_MAX, field: str = "frame"
) -> Json:
    """Read JSON text that must already be in canonical form.

    Args:
        data: The bytes.
        depth_max: How many arrays and objects may enclose one another.
        field: What people call the value; the paths of errors start with it.

    Returns:
        The value. Numbers of 2^63 and more may be a float, which equals the integer.

    Raises:
        PayloadInvalid: The codes of `decode`, and `notCanonical` when writing the value gives other
            bytes.
    """
    try:
        value = cast("Json", orjson.loads(data))
        # orjson keeps the last of two equal keys; writing the value then gives other bytes.
        if encode(value, depth_max=depth_max) == data:
            return value
    except (orjson.JSONDecodeError, PayloadInvalid):
        pass  # the reader below says where and why, and reads what orjson takes otherwise
    value, canonical = _parse(data, depth_max, field)
    if canonical == data:
        return value
    raise _Fault("notCanonical", "not in canonical form").refusal(field)


def utf8(text: str, *, field: str = "value") -> bytes:
    """Encode text as UTF-8. Raises PayloadInvalid (`loneSurrogate`) where UTF-8 cannot hold it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise _lone_surrogate().refusal(field) from None


def fragment(data: bytes) -> Json:
    """Stand for a value by its canonical bytes, which `encode` then copies without parsing them.

    Args:
        data: Bytes that `encode` wrote: nobody looks at them again, so nothing else may be passed.
            Their own depth is not counted; FRAME_DEPTH_MAX leaves room for a stored value inside a
            frame.

    Returns:
        An opaque part of a value for `encode`; nothing else can be done with it.
    """
    return cast("Json", orjson.Fragment(data))


def _is_plain(value: object, depth_max: int) -> bool:
    """Say whether orjson writes this value as the rules ask, up to what it refuses by itself.

    It refuses half surrogate pairs and integers over 53 bits. Exact types only: of subclasses,
    tuples, dates, enumerations and data classes orjson has ideas of its own. The value is taken
    level by level, because a whole level costs few calls into the interpreter.
    """
    level: list[object] = [value]
    for _ in range(depth_max + 1):
        kinds = set(map(type, level))
        if kinds <= _PLAIN_SCALARS:
            return True
        if not kinds <= _PLAIN_TYPES or len(level) > _LEVEL_ITEMS_MAX:
            return False
        objects = [cast("dict[str, object]", item) for item in level if type(item) is dict]
        if objects and not _keys_keep_order(set(chain.from_iterable(objects))):
            return False
        arrays = [cast("list[object]", item) for item in level if type(item) is list]
        level = list(chain.from_iterable(map(dict[str, object].values, objects)))
        level.extend(chain.from_iterable(arrays))
    return False


def _keys_keep_order(keys: set[str]) -> bool:
    """Say whether these are texts that sort by code point as they do by UTF-16 code unit."""
    if not _PLAIN_KEYS.issuperset(map(type, keys)):
        return False
    text = "".join(keys)
    return text.isascii() or max(text) <= _UTF16_ORDER_MAX


def _write(value: object, depth_left: int, out: list[str]) -> None:
    """Append the canonical text of a value, piece by piece."""
    if isinstance(value, dict):
        _write_object(cast("dict[object, object]", value), depth_left, out)
    elif isinstance(value, list):
        _write_array(cast("list[object]", value), depth_left, out)
    else:
        out.append(_scalar(value))


def _write_object(members: dict[object, object], depth_left: int, out: list[str]) -> None:
    """Append an object, its keys in UTF-16 order."""
    if depth_left <= 0:
        raise _too_deep()
    keys: list[str] = []
    for key in members:
        if not isinstance(key, str):
            raise _Fault("keyNotText", "the keys of an object must be text")
        keys.append(key)
    # Half surrogate pairs pass here so that the fault below can name the key.
    keys.sort(key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    separator = "{"
    for key in keys:
        try:
            out.extend((separator, _text(key), ":"))
            _write(members[key], depth_left - 1, out)
        except _Fault as fault:
            fault.steps.append(key)
            raise
        separator = ","
    out.append("}" if keys else "{}")


def _write_array(items: list[object], depth_left: int, out: list[str]) -> None:
    """Append an array."""
    if depth_left <= 0:
        raise _too_deep()
    separator = "["
    for index, item in enumerate(items):
        out.append(separator)
        try:
            _write(item, depth_left - 1, out)
        except _Fault as fault:
            fault.steps.append(index)
            raise
        separator = ","
    out.append("]" if items else "[]")


def _scalar(value: object) -> str:
    """Return the canonical text of a value that holds no others."""
    match value:
        case str():
            return _text(value)
        case None:
            return "null"
        case bool():  # before int, whose subclass it is
            return "true" if value else "false"
        case int():
            return _integer(value)
        case float():
            return _number(value)
        case orjson.Fragment():
            return orjson.dumps(value).decode()
        case _Flaw(code, message, member):
            raise _Fault(code, message, *(() if member is None else (member,)))
        case _:
            raise _Fault("notJson", f"{type(value).__name__} is not a JSON value")


def _text(value: str) -> str:
    """Return a JSON string with the shortest escapes."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _lone_surrogate() from None
    return encode_basestring(value)


def _integer(value: int) -> str:
    """Return an integer's text; beyond 53 bits it must be a double, whose text it then has."""
    if -_SAFE_INTEGER <= value <= _SAFE_INTEGER:
        return int.__repr__(value)
    try:
        double = float(value)
    except OverflowError:
        raise _Fault("numberInexact", _INEXACT) from None
    if int(double) != value:
        raise _Fault("numberInexact", _INEXACT)
    return _number(double)


def _number(value: float) -> str:
    """Return ECMAScript's text of a double: Python's digits, as short, in another layout."""
    if not math.isfinite(value):
        raise _Fault("numberNotFinite", _NOT_FINITE)
    if value == 0:
        return "0"  # also for the negative zero
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = float.__repr__(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The decimal point stands after `point` digits: 12.5 has two before it, 0.05 has minus one.
    point = len(whole) + int(exponent or "0") - (len(whole + fraction) - len(digits))
    return sign + _layout(digits.rstrip("0"), point)


def _layout(digits: str, point: int) -> str:
    """Place the decimal point after `point` digits, as ECMAScript's Number::toString does."""
    count = len(digits)
    if count <= point <= _PLAIN_EXPONENT_MAX:
        return digits + "0" * (point - count)
    if 0 < point <= _PLAIN_EXPONENT_MAX:
        return f"{digits[:point]}.{digits[point:]}"
    if _PLAIN_EXPONENT_MIN < point <= 0:
        return "0." + "0" * -point + digits
    fraction = f".{digits[1:]}" if count > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


def _parse(data: bytes, depth_max: int, field: str) -> tuple[Json, bytes]:
    """Return the value of a JSON text and its canonical bytes."""
    try:
        value = cast(
            "Json",
            json.loads(
                data.decode(),
                object_pairs_hook=_object,
                parse_int=_integer_literal,
            ),
        )
    except UnicodeDecodeError as error:
        raise _Fault("notUtf8", f"byte {error.start} is not UTF-8").refusal(field) from None
    except json.JSONDecodeError as error:
        message = f"not JSON at line {error.lineno}, column {error.colno}: {error.msg}"
        raise _Fault("notJson", message).refusal(field) from None
    except RecursionError:
        raise _too_deep().refusal(field) from None
    # Writing it refuses what it must not hold: flaws, NaN and infinities, half pairs, depth.
    return value, encode(value, depth_max=depth_max, field=field)


def _object(members: list[tuple[str, object]]) -> object:
    """Build an object from its members, or the flaw that a key stands twice."""
    found = dict(members)
    if len(found) == len(members):
        return found
    (twice, _), *_ = Counter(key for key, _ in members).most_common(1)
    return _Flaw("duplicateKey", "this key stands twice", twice)


def _integer_literal(text: str) -> object:
    """Read an integer literal: as an int, or as the double whose text it is."""
    if len(text) > _INTEGER_DIGITS_MAX:
        return _Flaw("numberInexact", _INEXACT)
    value = int(text)
    if -_SAFE_INTEGER <= value <= _SAFE_INTEGER:
        return value
    double = float(text)
    is_text_of_another = math.isfinite(double) and int(double) != value and _number(double) == text
    return double if is_text_of_another else value


def _lone_surrogate() -> _Fault:
    """Return the fault of text that UTF-8 cannot hold."""
    return _Fault("loneSurrogate", "text must not hold half a surrogate pair")


def _too_deep() -> _Fault:
    """Return the fault of a value that is nested too deep."""
    return _Fault("valueTooDeep", "nested too deep")


def _path_text(field: str, steps: list[str | int]) -> str:
    """Write a path as people do, `input.items[3].name`, quoting keys that are no names; bounded."""
    parts = [field]
    for step in steps:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif _PLAIN_NAME.fullmatch(step):
            parts.append(f".{step}")
        else:
            parts.append(f"[{json.dumps(step)}]")
    text = "".join(parts)
    if len(text) <= FIELD_CHARS_MAX:
        return text
    # The end says more than the middle: there stands the member that people must look for.
    half = FIELD_CHARS_MAX // 2 - 1
    return f"{text[:half]}…{text[-half:]}"
