"""Changes applied to a JSON document that others still hold.

A new document shares everything with the old one but the containers on the way to the change; the
old one stays as it was. JSON Patch libraries know no `append`, copy whole documents or change them
in place, and let `-` or a missing member pass where this protocol does not.

>>> apply({"items": [1]}, [PatchOperation(op="append", path="/items", value=[2, 3])])
{'items': [1, 2, 3]}
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, cast

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.base.limits import FRAME_DEPTH_MAX
from pi_workflows.protocol.run_patch import PatchOperation

_BAD_ESCAPE: Final = re.compile("~(?![01])")
_INDEX: Final = re.compile("0|[1-9][0-9]*")
_END: Final = "-"
# More digits than any array has items, and int() is quadratic in them.
_INDEX_DIGITS_MAX: Final = 15


def apply(document: Json, operations: Iterable[PatchOperation], *, base: str = "") -> Json:
    """Return a document with changes.

    Args:
        document: What is there now; it is not changed.
        operations: The changes, in order.
        base: A JSON Pointer that stands before every path.

    Returns:
        The new document. It shares with the old one and with the operations: change neither.

    Raises:
        ProtocolViolation: `pointerInvalid`, `pointerTooDeep`, `indexInvalid`, `memberMissing`,
            `notContainer`, `notArray` or `rootRemoved`.
    """
    start = pointer_tokens(base)
    for operation in operations:
        tokens = [*start, *pointer_tokens(operation.path)]
        document = _edited(document, tokens, operation)
    return document


def pointer_tokens(pointer: str) -> list[str]:
    """Take a JSON Pointer apart (RFC 6901).

    Args:
        pointer: Empty for the whole document, else a slash before each token.

    Returns:
        The tokens, unescaped.

    Raises:
        ProtocolViolation: `pointerInvalid` or `pointerTooDeep`.
    """
    if not pointer:
        return []
    if not pointer.startswith("/") or _BAD_ESCAPE.search(pointer):
        raise ProtocolViolation("a path in a patch is no JSON Pointer", code="pointerInvalid")
    if pointer.count("/") > FRAME_DEPTH_MAX:
        raise ProtocolViolation(
            "a path in a patch is deeper than a document", code="pointerTooDeep"
        )
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer[1:].split("/")]


def _edited(value: Json, tokens: Sequence[str], operation: PatchOperation) -> Json:
    """Return a value with a change at the place that the tokens lead to."""
    if not tokens:
        return _replaced(value, operation)
    if isinstance(value, dict):
        return _edited_object(value, tokens, operation)
    if isinstance(value, list):
        return _edited_array(value, tokens, operation)
    raise ProtocolViolation("a path in a patch leads through a scalar", code="notContainer")


def _replaced(value: Json, operation: PatchOperation) -> Json:
    """Return what stands in the place of a value."""
    if operation.op == "append":
        if not isinstance(value, list):
            raise ProtocolViolation("a patch appends to something else", code="notArray")
        return [*value, *cast("list[Json]", operation.value)]
    if operation.op == "remove":
        raise ProtocolViolation("a patch removes the whole document", code="rootRemoved")
    return operation.value


def _edited_object(
    members: dict[str, Json], tokens: Sequence[str], operation: PatchOperation
) -> Json:
    """Return an object with a change in it."""
    name, *rest = tokens
    if operation.op == "add" and not rest:
        return {**members, name: operation.value}
    if name not in members:
        raise _missing()
    if operation.op == "remove" and not rest:
        return {other: member for other, member in members.items() if other != name}
    return {**members, name: _edited(members[name], rest, operation)}


def _edited_array(items: list[Json], tokens: Sequence[str], operation: PatchOperation) -> Json:
    """Return an array with a change in it."""
    token, *rest = tokens
    if operation.op == "add" and not rest:
        at = len(items) if token == _END else _index(token, len(items) + 1)
        return [*items[:at], operation.value, *items[at:]]
    at = _index(token, len(items))
    if operation.op == "remove" and not rest:
        return [*items[:at], *items[at + 1 :]]
    return [*items[:at], _edited(items[at], rest, operation), *items[at + 1 :]]


def _index(token: str, stop: int) -> int:
    """Return the index that a token says, which must be below `stop`."""
    if token == _END:
        raise _missing()
    if not _INDEX.fullmatch(token):
        raise ProtocolViolation("a path in a patch has no index there", code="indexInvalid")
    if len(token) > _INDEX_DIGITS_MAX or (index := int(token)) >= stop:
        raise _missing()
    return index


def _missing() -> ProtocolViolation:
    """Return the violation of a path to nothing."""
    return ProtocolViolation("a path in a patch leads to nothing", code="memberMissing")
