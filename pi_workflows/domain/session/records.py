"""Records as a recorder sends them, read and encoded before the writer has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic_core import from_json

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Corrupt, LimitExceeded, PayloadInvalid
from pi_workflows.base.limits import (
    ENVELOPE_ID_BYTES_MAX,
    SESSION_BATCH_BYTES_MAX,
    SESSION_BATCH_RECORDS_MAX,
    SESSION_RECORD_BYTES_MAX,
)
from pi_workflows.domain.session.kinds import check_payload

_AT = "at"


@dataclass(frozen=True, slots=True)
class NewEntry:
    """A settled entry of a Pi session.

    Attributes:
        seq: Its number in the segment, from 1.
        entry_id: The identity that Pi gave it.
        content: The entry as Pi wrote it.
    """

    seq: int
    entry_id: str
    content: Blob

    @classmethod
    def of(cls, seq: int, entry: Mapping[str, Json], field: str) -> NewEntry:
        """Read a record.

        Args:
            seq: Its number.
            entry: The entry.
            field: Where it stands in the request, such as `entries[3]`.

        Raises:
            PayloadInvalid: The entry has no identity, or is no JSON that can be stored.
        """
        entry_id = entry.get("id")
        if not isinstance(entry_id, str) or not 0 < _bytes_of(entry_id) <= ENVELOPE_ID_BYTES_MAX:
            raise PayloadInvalid(
                f"{field}.entry.id: must be a text of 1 to {ENVELOPE_ID_BYTES_MAX} bytes",
                field=f"{field}.entry.id",
            )
        return cls(seq, entry_id, _encoded(entry, f"{field}.entry"))


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A session event.

    Attributes:
        seq: Its number in the segment, from 1.
        event_type: Its kind.
        node_id: The node that the session worked on.
        attempt_id: The attempt of that node.
        turn_id: The turn.
        message_id: The message.
        tool_call_id: The tool call.
        content: The stored payload: its members, and the time at which the recorder saw it.
    """

    seq: int
    event_type: str
    node_id: str | None
    attempt_id: str | None
    turn_id: str | None
    message_id: str | None
    tool_call_id: str | None
    content: Blob

    @classmethod
    def of(
        cls,
        seq: int,
        event_type: str,
        at_ms: int,
        payload: Mapping[str, Json],
        field: str,
        *,
        node_id: str | None = None,
        attempt_id: str | None = None,
        turn_id: str | None = None,
        message_id: str | None = None,
        tool_call_id: str | None = None,
    ) -> NewEvent:
        """Read a record.

        Args:
            seq: Its number.
            event_type: Its kind.
            at_ms: When the recorder saw it; wall time, which paces a playback and orders nothing.
            payload: Its payload.
            field: Where it stands in the request, such as `events[3]`.
            node_id: And the following: the names that it carries.
            attempt_id: As above.
            turn_id: As above.
            message_id: As above.
            tool_call_id: As above.

        Raises:
            PayloadInvalid: It is not of a kind of ours.
        """
        check_payload(event_type, payload, field)
        return cls(
            seq,
            event_type,
            node_id,
            attempt_id,
            turn_id,
            message_id,
            tool_call_id,
            _encoded({_AT: at_ms, **payload}, f"{field}.payload"),
        )


def stored_payload(content: bytes, recorded_at_ms: int) -> tuple[int, dict[str, Json]]:
    """Return when a recorder saw an event, and the payload that it sent.

    Args:
        content: The stored payload; of a kind that nobody writes it may be any JSON.
        recorded_at_ms: When it was stored, where it does not say when it was seen.
    """
    value = stored_members(content)
    at_ms = value.pop(_AT, None)
    return at_ms if isinstance(at_ms, int) else recorded_at_ms, value


def stored_members(content: bytes) -> dict[str, Json]:
    """Return the members of a stored payload; one that is no object stands under `value`.

    What we wrote is canonical, so that nothing is left to be strict about.
    """
    try:
        value = cast("Json", from_json(content))
    except ValueError as error:
        raise Corrupt("What is stored of a session event is no JSON.") from error
    return value if isinstance(value, dict) else {"value": value}


def check_batch(records: Sequence[NewEntry | NewEvent], field: str) -> None:
    """Refuse records that are too many or too large for one batch.

    Args:
        records: Those of one request.
        field: What they are called there.

    Raises:
        LimitExceeded: `batchTooLarge` or `recordTooLarge`. A single record may be as large as its
            frame lets it.
    """
    sizes = [len(record.content.content) for record in records]
    if len(sizes) > SESSION_BATCH_RECORDS_MAX:
        raise LimitExceeded(
            f"{field}: at most {SESSION_BATCH_RECORDS_MAX} records at once",
            code="batchTooLarge",
            field=field,
        )
    if any(size > SESSION_RECORD_BYTES_MAX for size in sizes):
        raise LimitExceeded(
            f"{field}: a record has at most {SESSION_RECORD_BYTES_MAX} bytes",
            code="recordTooLarge",
            field=field,
        )
    if len(sizes) > 1 and sum(sizes) > SESSION_BATCH_BYTES_MAX:
        raise LimitExceeded(
            f"{field}: at most {SESSION_BATCH_BYTES_MAX} bytes at once",
            code="batchTooLarge",
            field=field,
            hint="Send fewer records at once.",
        )


def _encoded(members: Mapping[str, Json], field: str) -> Blob:
    """Return an object as it is stored. Raises PayloadInvalid with the path of its fault."""
    return Blob.of(canonical.encode(dict(members), field=field), "application/json")


def _bytes_of(text: str) -> int:
    """Return how many bytes of UTF-8 a text has."""
    return len(canonical.utf8(text))
