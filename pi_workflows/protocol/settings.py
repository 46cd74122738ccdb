"""Changes of a run's settings, and the prompts that follow a run: payloads and receipts."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pi_workflows.base.limits import FOLLOW_UP_CHARS_MAX
from pi_workflows.protocol.wire import (
    AnyJson,
    Count,
    Id,
    Many,
    Maybe,
    Number,
    SessionPayload,
    Text,
    WireModel,
)


class ChangeSettings(SessionPayload):
    """`run.changeSettings`: an RFC 6902 patch of a run's settings.

    Attributes:
        patch: The operations, in order.
        scope_id: Which settings; by default the root's, or the only ones.
        expected_change_number: The change number at which they must still be.
    """

    patch: Many[AnyJson]
    scope_id: Maybe[Text] = None
    expected_change_number: Maybe[Count] = None


class SettingsChanged(WireModel):
    """Receipt of `run.changeSettings`; `adopted` when there was nothing to change any more."""

    run_id: Id
    scope_id: Text
    change_number: Count
    adopted: bool


class FollowUpQueue(SessionPayload):
    """`followUp.queue`: a prompt for the run's session, once the run completed."""

    prompt: Annotated[str, Field(min_length=1, max_length=FOLLOW_UP_CHARS_MAX)]


class FollowUpQueued(WireModel):
    """Receipt of `followUp.queue`."""

    run_id: Id
    follow_up_id: Id
    order: Number
    state: Literal["queued"]


class FollowUpRemove(SessionPayload):
    """`followUp.remove`: takes a prompt back that was not sent."""

    follow_up_id: Id


class FollowUpRemoved(WireModel):
    """Receipt of `followUp.remove`."""

    run_id: Id
    follow_up_id: Id
    state: Literal["removed"]
