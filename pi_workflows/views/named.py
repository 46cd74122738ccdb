"""What a stored patch names instead of holding it.

A member of the run view, `{"$view": "<pointer>"}`, items that were added to one of its pages,
`{"$items": {"page", "after", "through"}}`, or the newest of its trace, `{"$newest": <count>}`, with
how many it then has, `{"$total": "trace"}`: without numbers of the run a patch is the same for
every step. What stands there otherwise are texts and numbers of ours, so that nothing of a run can
be taken for a name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias, cast

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Corrupt
from pi_workflows.base.limits import STORED_PATCH_KEPT_BYTES_MAX, STORED_PATCHES_KEPT_MAX

PageName: TypeAlias = Literal["entries", "session_events"]
"""A page of a captured session, which grows at its end."""


class Range(NamedTuple):
    """Items of a page: those after a number, through another one, which is the last."""

    page: PageName
    after: int
    through: int


def named_member(pointer: str) -> Json:
    """Return the name of a member of the run view, by its JSON Pointer."""
    return {"$view": pointer}


def named_range(page: PageName, after: int, through: int) -> Json:
    """Return the name of items that a page got."""
    return {"$items": {"page": page, "after": after, "through": through}}


def named_newest(count: int) -> Json:
    """Return the name of the newest events of a trace, as it was at a patch's revision."""
    return {"$newest": count}


def named_total() -> Json:
    """Return the name of how many events a trace had at a patch's revision."""
    return {"$total": "trace"}


@dataclass(frozen=True, slots=True)
class Plain:
    """An operation that names nothing: its canonical bytes."""

    content: bytes


@dataclass(frozen=True, slots=True)
class Member:
    """An operation that gives a member of the view, at a path of its target, its value."""

    pointer: str
    path: Json


@dataclass(frozen=True, slots=True)
class Added:
    """An operation whose value is what a page got."""

    members: dict[str, Json]
    items: Range


@dataclass(frozen=True, slots=True)
class Newest:
    """An operation whose value is the newest events of the trace."""

    members: dict[str, Json]
    count: int


@dataclass(frozen=True, slots=True)
class Total:
    """An operation whose value is how many events the trace has."""

    members: dict[str, Json]


Operation: TypeAlias = Plain | Member | Added | Newest | Total
"""One operation of a stored patch."""


def operations(patch: bytes) -> tuple[Operation, ...]:
    """Read a stored patch; the same few are read again and again, and kept.

    Args:
        patch: Its stored bytes.

    Returns:
        Its operations, shared by everybody who reads it.

    Raises:
        Corrupt: It has a form that is not ours.
    """
    return _kept(patch) if len(patch) <= STORED_PATCH_KEPT_BYTES_MAX else _read(patch)


def _read(patch: bytes) -> tuple[Operation, ...]:
    """Read a stored patch."""
    found = canonical.decode(patch)
    if not isinstance(found, list):
        raise strange()
    return tuple(map(_operation, found))


_kept: Final = lru_cache(STORED_PATCHES_KEPT_MAX)(_read)


def _operation(operation: Json) -> Operation:
    """Read one operation."""
    if not isinstance(operation, dict):
        raise strange()
    match operation.get("value"):
        case {"$view": str(pointer)}:
            return Member(pointer, operation.get("path"))
        case {"$items": {"page": str(page), "after": int(after), "through": int(through)}}:
            return Added(operation, Range(cast("PageName", page), after, through))
        case {"$newest": int(count)}:
            return Newest(operation, count)
        case {"$total": "trace"}:
            return Total(operation)
        case _:
            return Plain(canonical.encode(operation))


def strange() -> Corrupt:
    """Return the error of a patch that we did not write."""
    return Corrupt("A stored patch of a run's view has a form that is not ours.")
