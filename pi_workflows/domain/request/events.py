"""Facts about requests. They belong to the run's resource."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from pi_workflows.domain.rows import RequestChange, SubmissionRow
from pi_workflows.domain.run.events import InteractionEvent, RunEvent

CloseReason: TypeAlias = Literal["missingSubmission", "decisionExpired"]


class RequestSubmitted(RunEvent):
    """An answer arrived. An accepted one settles its request and queues the run."""

    type: ClassVar[str] = "request.submitted"

    submission: SubmissionRow
    request: RequestChange | None = None


class RequestValidated(InteractionEvent):
    """A submission was judged. An accepted one settles its request and queues the run."""

    type: ClassVar[str] = "request.validated"


class RequestCancelled(InteractionEvent):
    """A request closed without an answer; a runner records how its attempt ended."""

    type: ClassVar[str] = "request.cancelled"

    reason: CloseReason
