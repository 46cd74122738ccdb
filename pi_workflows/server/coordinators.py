"""Who coordinates which Pi session: one connection each, under an epoch that nobody had before.

The client protocol, "Coordinator epochs". Nothing here outlives the process: a client that connects
again takes a new epoch, and before it does anything in the session's name it reports its branch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from pi_workflows.base.errors import AuthorityDenied
from pi_workflows.base.rate import Rate


class SessionClaim(NamedTuple):
    """What a request says about itself when a session asks: which one, and its epoch."""

    session_id: str
    epoch: int


@dataclass(frozen=True, slots=True)
class BranchReport:
    """What a session's client last said of the branch that it shows.

    Attributes:
        workflow_message_id: The message that it was asked for; None when there is none.
        pi_session_entry_id: The entry that holds the message; None when the branch has none.
        is_idle: Whether the session works on nothing.
        has_pending_messages: Whether somebody's prompt waits in it.
    """

    workflow_message_id: str | None
    pi_session_entry_id: str | None
    is_idle: bool
    has_pending_messages: bool


@dataclass(slots=True, eq=False)
class Coordinator:
    """The one connection that may speak for a session.

    Attributes:
        session_id: The session.
        epoch: Proves it; no earlier coordinator of this server had it.
        connection_id: The connection.
        subscription_id: The subscription that took it, and with which it ends.
        branch: What it reported; None before it did.
        is_working: Whether it reported a turn that is open.
        rate: How fast it publishes progress; None before it did.
    """

    session_id: str
    epoch: int
    connection_id: str
    subscription_id: str
    branch: BranchReport | None = None
    is_working: bool = False
    rate: Rate | None = None

    @property
    def is_busy(self) -> bool:
        """Whether its session works, as far as it said so."""
        return self.branch is not None and (self.is_working or not self.branch.is_idle)


class Coordinators:
    """The coordinators of all sessions.

    Args:
        changed: Called, without blocking, with a session whose coordinator changed or reported its
            branch for the first time.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        """Begin with no session coordinated."""
        self._changed = changed
        self._by_session: dict[str, Coordinator] = {}
        self._by_connection: dict[str, Coordinator] = {}
        self._newest_epoch = 0
        # Bounded by the sessions that were ever looked after since the start.
        self._cleared: dict[str, str] = {}

    def of(self, session_id: str) -> Coordinator | None:
        """Return who coordinates a session; None when nobody does."""
        return self._by_session.get(session_id)

    def held_by(self, connection_id: str) -> Coordinator | None:
        """Return what a connection coordinates; None when it coordinates nothing."""
        return self._by_connection.get(connection_id)

    def require_free(self, session_id: str, connection_id: str) -> None:
        """Refuse a connection that coordinates another session: it speaks for one.

        Raises:
            AuthorityDenied: `coordinatesAnother`.
        """
        held = self.held_by(connection_id)
        if held is not None and held.session_id != session_id:
            raise AuthorityDenied(
                "This connection coordinates another session.",
                code="coordinatesAnother",
                field="sessionId",
                hint="Open one connection for each session.",
            )

    def fence(self, session_id: str) -> None:
        """End the coordination of a session: nothing more is taken in its name."""
        former = self._by_session.pop(session_id, None)
        if former is not None:
            del self._by_connection[former.connection_id]
            self._changed(session_id)

    def take(self, session_id: str, connection_id: str, subscription_id: str) -> int:
        """Make a connection the sole coordinator of a session; the former one is fenced.

        Args:
            session_id: The session.
            connection_id: The connection.
            subscription_id: Its subscription, with which the coordination ends.

        Returns:
            The new epoch.

        Raises:
            AuthorityDenied: `coordinatesAnother`; nothing changed.
        """
        self.require_free(session_id, connection_id)
        self.fence(session_id)
        self._newest_epoch += 1
        coordinator = Coordinator(session_id, self._newest_epoch, connection_id, subscription_id)
        self._by_session[session_id] = self._by_connection[connection_id] = coordinator
        self._changed(session_id)
        return coordinator.epoch

    def release(self, connection_id: str, subscription_id: str) -> None:
        """Note that a subscription ended; with the one that took a session its epoch ends."""
        held = self.held_by(connection_id)
        if held is not None and held.subscription_id == subscription_id:
            self.fence(held.session_id)

    def report(self, session_id: str, branch: BranchReport) -> None:
        """Keep what the coordinator of a session reported; its first report opens the session.

        Args:
            session_id: A session that is coordinated.
            branch: What it reported.
        """
        coordinator = self._by_session[session_id]
        before = (coordinator.branch is None, coordinator.is_busy)
        coordinator.branch = branch
        if before != (False, coordinator.is_busy):
            self._changed(session_id)

    def works(self, session_id: str, *, is_working: bool) -> None:
        """Note that a session's open turn began, or that it has none any more."""
        coordinator = self.of(session_id)
        if coordinator is not None and coordinator.is_working != is_working:
            coordinator.is_working = is_working
            self._changed(session_id)

    def clear(self, session_id: str, run_id: str) -> None:
        """Show the end of this run in its session no longer."""
        self._cleared[session_id] = run_id
        self._changed(session_id)

    def cleared(self, session_id: str) -> str | None:
        """Return the ended run that a session shows no longer; None when there is none."""
        return self._cleared.get(session_id)

    def is_there(self, session_id: str) -> bool:
        """Whether a session's client is connected and has reported its branch."""
        coordinator = self.of(session_id)
        return coordinator is not None and coordinator.branch is not None

    def busy_sessions(self) -> frozenset[str]:
        """Return the sessions that work, as far as their clients said so."""
        return frozenset(
            session_id
            for session_id, coordinator in self._by_session.items()
            if coordinator.is_busy
        )

    def require(
        self, claim: SessionClaim, connection_id: str, *, needs_report: bool = True
    ) -> None:
        """Refuse a request in the name of a session that its connection does not speak for.

        Args:
            claim: What the request says.
            connection_id: The connection that it came on.
            needs_report: Whether the branch has to be reported by now.

        Raises:
            AuthorityDenied: `notCoordinator` when another connection, or another epoch, is the
                session's; `branchReportRequired` when its branch is unknown.
        """
        coordinator = self.of(claim.session_id)
        if coordinator is None or coordinator.connection_id != connection_id:
            raise AuthorityDenied(
                "This connection does not coordinate that session.",
                code="notCoordinator",
                field="targetSessionId",
            )
        if coordinator.epoch != claim.epoch:
            raise AuthorityDenied(
                "The session's coordinator has another epoch now.",
                code="notCoordinator",
                field="coordinatorEpoch",
            )
        if needs_report and coordinator.branch is None:
            raise AuthorityDenied(
                "The session's branch has not been reported yet.",
                code="branchReportRequired",
                hint="Send workflowMessage.reportBranch first.",
            )
