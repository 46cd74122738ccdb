"""The last good view of what a Pi session works on.

Each event brings the whole view, so that there is nothing to put together.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.views import SubscriptionFailure

SessionViewDocument: TypeAlias = dict[str, Json]
"""`pi-workflows.session-view.v1`."""

_VIEW_SCHEMA: Final = "pi-workflows.session-view.v1"


class SessionMirror:
    """The newest view of one session.

    Args:
        session_id: The session.
    """

    def __init__(self, session_id: str) -> None:
        """Begin without a view."""
        self.session_id = session_id
        self._view: SessionViewDocument | None = None
        self._is_stale = True

    @property
    def view(self) -> SessionViewDocument | None:
        """`pi-workflows.session-view.v1`; None before the first one. Never change it."""
        return self._view

    @property
    def is_stale(self) -> bool:
        """Whether the view is for showing only.

        There is none, the connection is lost, or what came after it was no view of the session.
        """
        return self._is_stale

    def take(self, event: Event) -> Change:
        """Take what the subscription tells.

        Args:
            event: The next event, in order.

        Returns:
            What changed. What is no view of this session leaves the last good one, as stale.
        """
        if event.event is EventKind.UNAVAILABLE:
            self._is_stale = True
            try:
                return Change(failure=SubscriptionFailure.parse(event.payload))
            except PayloadInvalid:
                return Change(fault="eventInvalid")
        if event.event is not EventKind.SESSION_SNAPSHOT:
            return self._refuse("eventUnknown")
        view = event.payload
        if not isinstance(view, dict) or view.get("schema") != _VIEW_SCHEMA:
            return self._refuse("viewInvalid")
        if view.get("sessionId") != self.session_id:
            return self._refuse("wrongSession")
        self._view, self._is_stale = view, False
        return Change(is_snapshot=True)

    def _refuse(self, code: str) -> Change:
        """Keep the view that is there, for showing only."""
        self._is_stale = True
        return Change(fault=code)
