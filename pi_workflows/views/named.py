"""What a stored patch names instead of holding it.

A member of the run view, `{"$view": "<pointer>"}`, items that were added to one of its pages,
`{"$items": {"page", "after", "through"}}`, or the newest of its trace, `{"$newest": <count>}`, with
how many it then has, `{"$total": "trace"}`: without numbers of the run a patch is the same for
every step. What stands there otherwise are texts and numbers of ours, so that nothing of a run can
be taken for a name.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias, cast

from pi_workflows.base.canonical import Json

PageName: TypeAlias = Literal["entries", "session_events"]
"""A page of a captured session, which grows at its end."""

_MEMBER: Final = "$view"
_ITEMS: Final = "$items"
_NEWEST: Final = "$newest"
_TOTAL: Final[Json] = {"$total": "trace"}


class Range(NamedTuple):
    """Items of a page: those after a number, through another one, which is the last."""

    page: PageName
    after: int
    through: int


def named_member(pointer: str) -> Json:
    """Return the name of a member of the run view, by its JSON Pointer."""
    return {_MEMBER: pointer}


def named_range(page: PageName, after: int, through: int) -> Json:
    """Return the name of items that a page got."""
    return {_ITEMS: {"page": page, "after": after, "through": through}}


def named_newest(count: int) -> Json:
    """Return the name of the newest events of a trace, as it was at a patch's revision."""
    return {_NEWEST: count}


def named_total() -> Json:
    """Return the name of how many events a trace had at a patch's revision."""
    return _TOTAL


def member_of(value: Json) -> str | None:
    """Return the pointer that a value of a patch names, None when it names no member."""
    pointer = value.get(_MEMBER) if isinstance(value, dict) else None
    return pointer if isinstance(pointer, str) else None


def range_of(value: Json) -> Range | None:
    """Return the items that a value of a patch names, None when it names none."""
    found = value.get(_ITEMS) if isinstance(value, dict) else None
    match found:
        case {"page": str(page), "after": int(after), "through": int(through)}:
            return Range(cast("PageName", page), after, through)
        case _:
            return None


def newest_of(value: Json) -> int | None:
    """Return how many events a value of a patch names, None when it names none."""
    count = value.get(_NEWEST) if isinstance(value, dict) else None
    return count if isinstance(count, int) else None


def is_total(value: Json) -> bool:
    """Whether a value of a patch names how many events there are."""
    return value == _TOTAL
