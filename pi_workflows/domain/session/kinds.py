"""Every kind of session event and exactly what its payload holds.

The client protocol, section 11. What a session said stands in its settled entries; events keep the
order, the names and the timing only, so that a delta of text or of progress is no event of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import (
    ENVELOPE_ID_BYTES_MAX,
    FIELD_CHARS_MAX,
    REVISION_MAX,
    SESSION_TURN_TOOLS_MAX,
    SESSION_WORD_CHARS_MAX,
)

_Fault: TypeAlias = Callable[[Json], str | None]


class _Member(NamedTuple):
    """A member of a payload: what is wrong with a value of it, and whether it may be left out."""

    fault: _Fault
    is_optional: bool = False


_Members: TypeAlias = Mapping[str, _Member]


def _number(value: Json) -> str | None:
    """Say what keeps a value from being a count."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= REVISION_MAX:
        return None
    return "must be an integer from 0"


def _flag(value: Json) -> str | None:
    """Say what keeps a value from being true or false."""
    return None if isinstance(value, bool) else "must be true or false"


def _word(value: Json) -> str | None:
    """Say what keeps a value from being a word."""
    is_word = isinstance(value, str) and 0 < len(value) <= SESSION_WORD_CHARS_MAX
    return None if is_word else f"must be a text of 1 to {SESSION_WORD_CHARS_MAX} characters"


def _name(value: Json) -> str | None:
    """Say what keeps a value from being an identity of Pi's."""
    is_name = isinstance(value, str) and 0 < len(canonical.utf8(value)) <= ENVELOPE_ID_BYTES_MAX
    return None if is_name else f"must be a text of 1 to {ENVELOPE_ID_BYTES_MAX} bytes"


def _names(value: Json) -> str | None:
    """Say what keeps a value from being a list of identities."""
    if not isinstance(value, list) or len(value) > SESSION_TURN_TOOLS_MAX:
        return f"must be an array of at most {SESSION_TURN_TOOLS_MAX}"
    return next(filter(None, map(_name, value)), None)


def _one_of(*known: str) -> _Fault:
    """Return what says whether a value is none of these words."""

    def fault(value: Json) -> str | None:
        return None if value in known else f"must be one of {', '.join(known)}"

    return fault


_INDEX: Final = {"contentIndex": _Member(_number)}
_ASSISTANT: Final[Mapping[str, _Members]] = {
    "start": {},
    "text_start": _INDEX,
    "text_end": _INDEX,
    "thinking_start": _INDEX,
    "thinking_end": _INDEX,
    "toolcall_start": _INDEX,
    "toolcall_end": {
        **_INDEX,
        "toolCallId": _Member(_name, is_optional=True),
        "toolName": _Member(_word, is_optional=True),
    },
    "done": {"reason": _Member(_one_of("stop", "length", "toolUse", "deferred"))},
    "error": {"reason": _Member(_one_of("aborted", "error"))},
}
KINDS: Final[Mapping[str, _Members]] = {
    "turn_started": {"turnIndex": _Member(_number)},
    "message_started": {"role": _Member(_word)},
    "assistant_event": {"type": _Member(_one_of(*_ASSISTANT))},
    "message_finished": {
        "role": _Member(_word),
        "settled": _Member(_flag),
        "entryId": _Member(_name, is_optional=True),
    },
    "tool_execution_started": {"toolName": _Member(_word)},
    "tool_execution_finished": {"toolName": _Member(_word), "isError": _Member(_flag)},
    "turn_finished": {
        "turnIndex": _Member(_number),
        "messageId": _Member(_name, is_optional=True),
        "toolCallIds": _Member(_names),
    },
}
"""The members of each kind's payload; those of an `assistant_event` depend on its `type`."""


def check_payload(event_type: str, payload: Mapping[str, Json], field: str) -> None:
    """Refuse a session event that is not of a kind of ours.

    Args:
        event_type: What it says that it is.
        payload: Its payload.
        field: Where the event stands in the request, such as `events[3]`.

    Raises:
        PayloadInvalid: `sessionEventType` or `sessionEventPayload`, with the field at fault.
    """
    if event_type not in KINDS:
        is_delta = event_type.endswith("_delta")
        reason = "deltas are not recorded" if is_delta else f"must be one of {', '.join(KINDS)}"
        raise _refused("sessionEventType", f"{field}.type", reason)
    members = KINDS[event_type]
    _check(members if event_type != "assistant_event" else _of_assistant(payload), payload, field)


def _of_assistant(payload: Mapping[str, Json]) -> _Members:
    """Return the members of an assistant's event."""
    kind = payload.get("type")
    variant = _ASSISTANT.get(kind, {}) if isinstance(kind, str) else {}
    return {**KINDS["assistant_event"], **variant}


def _check(members: _Members, payload: Mapping[str, Json], field: str) -> None:
    """Refuse a payload that lacks a member, has a bad one, or has one too many."""
    place = f"{field}.payload"
    for name, member in members.items():
        if name not in payload:
            fault = None if member.is_optional else "is required"
        else:
            fault = member.fault(payload[name])
        if fault is not None:
            raise _refused("sessionEventPayload", f"{place}.{name}", fault)
    for name in payload:
        if name not in members:
            raise _refused("sessionEventPayload", f"{place}.{name}", "unknown field")


def _refused(code: str, field: str, reason: str) -> PayloadInvalid:
    """Return the refusal of a member."""
    shown = field if len(field) <= FIELD_CHARS_MAX else f"{field[: FIELD_CHARS_MAX - 1]}…"
    return PayloadInvalid(f"{shown}: {reason}", code=code, field=shown)
