"""A decision as those see it who may make it, and which deadlines are to come.

Its subject is shown by the question's contract alone; who decided, and over which channel, by
nothing.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import CARRIED_BYTES_MAX, INLINE_BYTES_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.domain.rows import Provenance
from pi_workflows.views.value import Value, embedded

SQL: Final = load(__package__, "decision.sql")


class Deadline(NamedTuple):
    """When a decision closes by itself, wall time."""

    decision_id: str
    run_id: str
    at_ms: int


class _Decision(NamedTuple):
    decision_id: str
    title: str
    audience: str
    revision: int
    created_at: int
    deadline_at: int | None
    request_digest: bytes
    choices_hash: bytes
    default_response_hash: bytes | None
    outcome: Literal["accepted", "cancelled"] | None
    provenance: Provenance | None
    response_hash: bytes | None
    reason: str | None
    resolved_at: int | None
    presentation_hash: bytes
    presentation_media: str
    presentation_bytes: int
    presentation_content: bytes | None

    @property
    def presentation(self) -> Value | None:
        """What the person is shown."""
        return Value.of(
            self.presentation_hash,
            self.presentation_media,
            self.presentation_bytes,
            self.presentation_content,
        )


def deadlines(read: Read, limit: int) -> list[Deadline]:
    """Return at most so many deadlines of open decisions, the next one first."""
    return read.all(Deadline, SQL["deadlines"], limit=limit)


def deadline_of(read: Read, run_id: str) -> Deadline | None:
    """Return the deadline of what a run asks a person now, or None."""
    return read.one(Deadline, SQL["deadline_of"], run_id=run_id)


def human_decision(
    read: Read, attempt_id: str, bytes_max: int = INLINE_BYTES_MAX
) -> dict[str, Json] | None:
    """Return the decision that an attempt asked for.

    Args:
        read: The view's read.
        attempt_id: The attempt.
        bytes_max: Bytes of the presentation; a larger one is a reference to its content.

    Returns:
        What is asked, until when, and how it was resolved; None when the attempt asked for none.
    """
    row = _row(read, attempt_id)
    if row is None:
        return None
    document: dict[str, Json] = {
        **_head(row),
        "revision": row.revision,
        "requestDigest": row.request_digest.hex(),
        "choices": canonical.fragment(read.blob(row.choices_hash)),
        "presentation": embedded(read, row.presentation, bytes_max),
    }
    if row.default_response_hash is not None:
        document["defaultResponse"] = canonical.fragment(read.blob(row.default_response_hash))
    return document


def decision_head(read: Read, attempt_id: str) -> dict[str, Json] | None:
    """Return what a row about a node says of the decision that its attempt asked for, or None."""
    row = _row(read, attempt_id)
    return None if row is None else _head(row)


def _row(read: Read, attempt_id: str) -> _Decision | None:
    """Read a decision."""
    return read.one(
        _Decision, SQL["decision"], attempt_id=attempt_id, carried_bytes=CARRIED_BYTES_MAX
    )


def _head(row: _Decision) -> dict[str, Json]:
    """Return a decision without what is shown of it."""
    head: dict[str, Json] = {
        "decisionId": row.decision_id,
        "title": row.title,
        "audience": row.audience,
        "createdAt": row.created_at,
    }
    if row.deadline_at is not None:
        head["deadlineAt"] = row.deadline_at
    if row.outcome is not None:
        head["outcome"] = row.outcome
        head["provenance"] = row.provenance
        head["resolvedAt"] = row.resolved_at
    if row.reason is not None:
        head["reason"] = row.reason
    return head
