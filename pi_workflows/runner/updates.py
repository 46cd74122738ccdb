"""Progress that an author's function publishes while it works."""

from __future__ import annotations

from typing import Final

import trio

from pi_workflows.authoring.updates import PublishedUpdate
from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import Clock
from pi_workflows.base.errors import LimitExceeded, Refused, TransitionDenied
from pi_workflows.base.limits import UPDATES_BURST_MAX, UPDATES_PER_SECOND_MAX
from pi_workflows.base.rate import Rate
from pi_workflows.runner.attempts import Attempt
from pi_workflows.runner.ending import Ending
from pi_workflows.runner.proposals import Proposals

_TOO_FAST: Final = (
    f"more than {UPDATES_PER_SECOND_MAX} updates a second, after a burst of {UPDATES_BURST_MAX}"
)


class Updates:
    """The updates of one run: they share one rate."""

    def __init__(self, proposals: Proposals, ending: Ending, clock: Clock) -> None:
        """Begin with a full burst."""
        self._proposals = proposals
        self._ending = ending
        self._rate = Rate(clock, per_second=UPDATES_PER_SECOND_MAX, burst=UPDATES_BURST_MAX)

    def publisher(self, attempt: Attempt | None) -> AttemptPublisher:
        """Return what an attempt's context publishes with; without an attempt all is refused."""
        return AttemptPublisher(self, attempt)

    async def publish(self, attempt: Attempt | None, update: PublishedUpdate) -> None:
        """Publish an update of an attempt; see `Context.publish_update`.

        Raises:
            TransitionDenied: `attemptEnded`.
            LimitExceeded: `updateRate`.
            Refused: The server's reason.
        """
        if attempt is None or not attempt.is_open:
            raise TransitionDenied("the node has ended; its updates are over", code="attemptEnded")
        if not self._rate.take():
            raise LimitExceeded(_TOO_FAST, code="updateRate")
        if self._ending.is_leaving:
            # The run is paused while this effect applies; a refusal would make it a failure.
            return
        command: dict[str, Json] = {
            "command": "update",
            "attemptId": attempt.attempt_id,
            "type": update.type,
            "key": update.key,
            "data": update.data,
        }
        result = await self._proposals.update(command)
        if result.outcome == "rejected":
            code, message = ("refused", "the update was refused")
            if result.detail is not None:
                code, message = result.detail.code, result.detail.message
            raise Refused(message, code=code)


class AttemptPublisher:
    """One attempt's way to publish, from trio or from a thread."""

    def __init__(self, updates: Updates, attempt: Attempt | None) -> None:
        """Publish for an attempt."""
        self._updates = updates
        self._attempt = attempt

    async def publish(self, update: PublishedUpdate) -> None:
        """Send one update and return once it is committed."""
        await self._updates.publish(self._attempt, update)

    def publish_from_thread(self, update: PublishedUpdate) -> None:
        """Do the same from a function that runs in a thread."""
        trio.from_thread.run(self._updates.publish, self._attempt, update)
