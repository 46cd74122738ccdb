"""Watching a Pi session, coordinating it, and what its client reports of its branch."""

from __future__ import annotations

from pi_workflows.kernel.order import Chore
from pi_workflows.protocol.coordination import (
    BranchReported,
    ReportBranch,
    SessionWatched,
    ViewSessionWatch,
    ViewSessionWindow,
)
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.views import Subscribed
from pi_workflows.server.coordinators import BranchReport
from pi_workflows.server.hub import SessionWindow
from pi_workflows.server.operations.call import Call, shown
from pi_workflows.server.operations.own_run import session_of
from pi_workflows.server.services import Services
from pi_workflows.store.transaction import Transaction


async def watch(services: Services, call: Call) -> Reply:
    """Begin to tell a connection about a session, and make it the coordinator if it asks for that.

    Raises:
        AuthorityDenied: `coordinatesAnother`; nothing was begun.
        LimitExceeded: The connection has too many subscriptions.
        Unavailable: As `Writer.submit`.
    """
    payload = call.read(ViewSessionWatch)
    session, coordinators = call.session, call.session.coordinators
    if payload.coordinator:
        session.require_room(payload.subscription_id)
        coordinators.require_free(payload.session_id, session.connection_id)
        coordinators.fence(payload.session_id)
        # What the former coordinator handed over is committed before the new one hears of its epoch
        # and sees the session.
        await services.writer.submit(Chore(_nothing))
        # Meanwhile another request of this connection may have taken another session.
        coordinators.require_free(payload.session_id, session.connection_id)
    # Nothing is awaited from here on: the reply leaves before the first event.
    window = SessionWindow(payload.session_id, payload.node_cursor)
    session.subscribe(payload.subscription_id, None, window=window)
    epoch = None
    if payload.coordinator:
        epoch = coordinators.take(
            payload.session_id, session.connection_id, payload.subscription_id
        )
    return shown(SessionWatched(subscribed=True, coordinator_epoch=epoch))


async def window(_services: Services, call: Call) -> Reply:
    """Show other nodes of a watched session. Raises NotFound (`subscriptionMissing`)."""
    payload = call.read(ViewSessionWindow)
    call.session.move(payload.subscription_id, payload.node_cursor)
    return shown(Subscribed(subscribed=True))


async def report_branch(_services: Services, call: Call) -> Reply:
    """Keep what a session's client sees of its branch; the session may then be spoken for."""
    payload = call.read(ReportBranch)
    branch = BranchReport(
        workflow_message_id=payload.workflow_message_id,
        pi_session_entry_id=payload.pi_session_entry_id,
        is_idle=payload.is_idle,
        has_pending_messages=payload.has_pending_messages,
    )
    call.session.coordinators.report(session_of(call), branch)
    # No message has been written for any session, so a branch holds none.
    return shown(BranchReported(outcome="absent", workflow_message_id=payload.workflow_message_id))


def _nothing(_tx: Transaction) -> None:
    """Change nothing: only the place in the queue counts."""
