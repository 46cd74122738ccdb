"""Facts about requests. They belong to the run's resource."""

from __future__ import annotations

from typing import ClassVar

from pi_workflows.domain.rows import RequestChange, SubmissionRow
from pi_workflows.domain.run.events import RunEvent


class RequestSubmitted(RunEvent):
    """An answer arrived. An accepted one settles its request and queues the run."""

    type: ClassVar[str] = "request.submitted"

    submission: SubmissionRow
    request: RequestChange
