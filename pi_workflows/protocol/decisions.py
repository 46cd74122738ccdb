"""Decisions that only a person makes: their answer, and the proof that there is a person."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pi_workflows.base.limits import PASSPHRASE_CHARS_MAX
from pi_workflows.protocol.wire import (
    Count,
    Id,
    JsonObject,
    Maybe,
    Payload,
    SessionPayload,
    WireModel,
)


class DecisionResponse(WireModel):
    """A decision as it is given: a choice, and the text that is typed to it by its name."""

    choice: str
    input: Maybe[dict[str, str]] = None


class DecisionAnswer(SessionPayload):
    """`decision.answer`: what a person decides about one request."""

    request_id: Id
    submission_id: Id
    response: DecisionResponse


class OperatorProve(Payload):
    """`operator.prove`: the passphrase, which is kept nowhere."""

    passphrase: Annotated[str, Field(min_length=1, max_length=PASSPHRASE_CHARS_MAX, repr=False)]


class OperatorProved(WireModel):
    """Receipt of `operator.prove`.

    Attributes:
        proved: The connection is the operator's.
        key_id: The key that it was proved with.
        expires_in_ms: For how long.
    """

    proved: Literal[True] = True
    key_id: Id
    expires_in_ms: Count


class Resolution(WireModel):
    """How a decision was resolved; nobody is named."""

    decision_id: Id
    outcome: Literal["accepted", "cancelled"]
    provenance: Literal["human", "timeout_policy", "explicit_cancel", "expired_no_default"]
    resolved_at: Count
    response: Maybe[JsonObject] = None
    reason: Maybe[str] = None


class DecisionAnswered(WireModel):
    """Receipt of `decision.answer`."""

    request_id: Id
    run_id: Id
    decision: Resolution
