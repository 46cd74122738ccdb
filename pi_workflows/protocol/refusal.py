"""The receipt of a refused request: what the one line of its error cannot carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    NotFound,
    Outcome,
    OwnershipLost,
    PayloadInvalid,
    Problem,
    ProblemsFound,
    Refused,
    RevisionConflict,
    Unavailable,
)
from pi_workflows.base.limits import FIELD_CHARS_MAX
from pi_workflows.protocol.envelope import Response
from pi_workflows.protocol.wire import JsonObject, Many, Maybe, Text, WireModel, error_line

_ERRORS: Final[Mapping[Outcome, type[Refused | Unavailable]]] = {
    Outcome.REJECTED: Refused,
    Outcome.CONFLICT: RevisionConflict,
    Outcome.NOT_FOUND: NotFound,
    Outcome.CLAIM_LOST: OwnershipLost,
    Outcome.UNAVAILABLE: Unavailable,
}


class ProblemItem(WireModel):
    """One mistake of several."""

    code: Text
    where: str
    message: Text


class Refusal(WireModel):
    """Why a request was refused.

    A stable code, the field at fault, what to do, and every mistake found.
    """

    code: Text
    field: Maybe[Text] = None
    hint: Maybe[Text] = None
    problems: Maybe[Many[ProblemItem]] = None
    decision: Maybe[JsonObject] = None
    """What was decided, for whoever came too late to decide it."""

    @classmethod
    def of(cls, error: Refused | Unavailable) -> Refusal:
        """Return what the wire carries of an error beside its message."""
        problems = error.problems if isinstance(error, ProblemsFound) else ()
        return cls(
            code=error.reason_code,
            field=(error.field or "")[:FIELD_CHARS_MAX] or None,
            hint=error_line(error.hint) if error.hint else None,
            problems=tuple(
                ProblemItem(code=p.code, where=p.where, message=error_line(p.message))
                for p in problems
            )
            or None,
        )

    @classmethod
    def read(cls, outcome: Outcome, receipt: Json) -> Refusal:
        """Read a receipt that may be a refusal.

        Args:
            outcome: The response's outcome.
            receipt: The response's receipt, or None.

        Returns:
            The refusal. Some operations answer a refusal with a document of their own, such as the
            current page; the code then is the outcome's.
        """
        try:
            return cls.parse(receipt)
        except PayloadInvalid:
            return cls(code=_ERRORS[outcome].code)

    def error(self, outcome: Outcome, message: str | None) -> Refused | Unavailable:
        """Return the error to raise on the client's side.

        Args:
            outcome: What was answered; not `accepted` or `adopted`.
            message: The response's one line.
        """
        if self.problems:
            found = (Problem(p.code, p.where, p.message) for p in self.problems)
            return ProblemsFound(found, code=self.code)
        kind = _ERRORS[outcome]
        return kind(message, code=self.code, field=self.field, hint=self.hint)


def refuse(
    request_id: str, error: Refused | Unavailable, *, revision: int | None = None
) -> Response:
    """Answer a request with an error.

    Args:
        request_id: The request.
        error: Why it was refused.
        revision: The resource's current revision, when the client may know it.

    Returns:
        The response: one line without payloads, and the `Refusal` as its receipt.
    """
    outcome = error.outcome if isinstance(error, Refused) else Outcome.UNAVAILABLE
    return Response(
        request_id=request_id,
        outcome=outcome,
        revision=revision,
        receipt=Refusal.of(error).document(),
        error=error_line(error.message) or error.reason_code,
    )
