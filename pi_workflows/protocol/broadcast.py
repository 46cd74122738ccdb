"""An event for many subscriptions, encoded once: their frames differ in one identity.

The decision on pushes. The frame has the same bytes as `envelope.encode` of the same event.
"""

from __future__ import annotations

from typing import Final, Self

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import FRAME_DEPTH_MAX
from pi_workflows.protocol import frames
from pi_workflows.protocol.envelope import SCHEMA, EventKind

# Canonical order: the identity stands behind `schema` and before `type`.
_IDENTITY: Final = b',"subscriptionId":'
_TAIL: Final = b',"type":"event"}'


class Broadcast:
    """News, ready for every subscription that it is for.

    Attributes:
        revision: The event's revision.
    """

    __slots__ = ("_frame", "_head", "_subscription_id", "revision")

    def __init__(self, head: bytes, revision: int) -> None:
        """Take encoded news; use `of`."""
        self.revision = revision
        self._head = head
        # Clients name alike what is alike: whoever has the name of the one before has its bytes.
        self._subscription_id = ""
        self._frame = b""

    @classmethod
    def of(
        cls, event: EventKind, payload: Json, *, revision: int, run_id: str | None = None
    ) -> Self:
        """Encode news.

        Args:
            event: What it tells.
            payload: The document; stored canonical bytes may stand in it.
            revision: The presentation revision, or the number of the event.
            run_id: The run that it is about.

        Returns:
            The news.

        Raises:
            PayloadInvalid: The payload is not JSON, or is nested deeper than 128.
        """
        members: dict[str, Json] = {
            "event": event.value,
            "payload": payload,
            "revision": revision,
            "schema": SCHEMA,
        }
        if run_id is not None:
            members["runId"] = run_id
        content = canonical.encode(members, depth_max=FRAME_DEPTH_MAX, field="frame")
        return cls(content[:-1] + _IDENTITY, revision)

    def frame(self, subscription_id: str) -> bytes:
        """Return the frame for one subscription.

        Args:
            subscription_id: The client's name for it, of at most 256 bytes of UTF-8.

        Returns:
            Canonical bytes and a line feed.

        Raises:
            LimitExceeded: `frameTooLarge`: the frame would be over 1 MiB.
        """
        if subscription_id != self._subscription_id:
            content = self._head + canonical.encode(subscription_id) + _TAIL
            self._frame = frames.framed(content)
            self._subscription_id = subscription_id
        return self._frame
