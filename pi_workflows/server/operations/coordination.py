"""Watching a Pi session, coordinating it, and what its client reports of its branch."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pi_workflows.base import canonical
from pi_workflows.domain.fact import Command
from pi_workflows.domain.message import branch as domain_branch
from pi_workflows.domain.message.state import message_state
from pi_workflows.domain.message.turn import EndTurn, StartTurn
from pi_workflows.kernel.order import Chore, Order
from pi_workflows.protocol.coordination import (
    BranchReported,
    ReportBranch,
    SessionWatched,
    ViewSessionWatch,
    ViewSessionWindow,
)
from pi_workflows.protocol.interactions import (
    ClearTerminal,
    TerminalCleared,
    TurnReport,
    TurnReported,
)
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.views import Subscribed
from pi_workflows.server.coordinators import BranchReport
from pi_workflows.server.hub import SessionWindow
from pi_workflows.server.operations.call import Call, remember, replied, shown
from pi_workflows.server.operations.own_run import session_of
from pi_workflows.server.services import Services
from pi_workflows.store.transaction import Transaction
from pi_workflows.views.session_view import retained_run


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


async def report_branch(services: Services, call: Call) -> Reply:
    """Keep what a session's client sees of its branch, and take what that proves.

    The session may be spoken for from its first report on. A message that the branch holds was
    sent; an idle session has no open turn; a step that the branch lost is told once more.

    Args:
        services: The server.
        call: `workflowMessage.reportBranch`.

    Returns:
        Whether the session holds the message, or the domain's refusal.

    Raises:
        Unavailable: As `Writer.submit`; the report counts all the same.
    """
    payload = call.read(ReportBranch)
    session_id = session_of(call)
    branch = BranchReport(
        workflow_message_id=payload.workflow_message_id,
        pi_session_entry_id=payload.pi_session_entry_id,
        is_idle=payload.is_idle,
        has_pending_messages=payload.has_pending_messages,
    )
    outcome: Literal["present", "absent"] = "absent"
    # The report counts whatever it proves, and what it proves is asked for in the session's name.
    call.session.coordinators.report(session_id, branch)
    run_id = _reported_run(services, session_id, payload.workflow_message_id)
    if run_id is not None:
        command = domain_branch.ReportBranch(
            run_id=run_id,
            session_id=session_id,
            message_id=payload.workflow_message_id,
            entry_id=payload.pi_session_entry_id,
            is_idle=payload.is_idle,
            has_pending_messages=payload.has_pending_messages,
            elapsed_ms=services.turns.elapsed_ms(services.turns.run_of(session_id) or run_id),
        )
        answer = await services.writer.submit(_unremembered(call, command, run_id))
        if answer.error is not None:
            return replied(answer)
        is_present = payload.pi_session_entry_id is not None
        outcome = "present" if is_present and payload.workflow_message_id else "absent"
    return shown(BranchReported(outcome=outcome, workflow_message_id=payload.workflow_message_id))


def _reported_run(services: Services, session_id: str, message_id: str | None) -> str | None:
    """Return the run that a branch report is about; None when there is nothing to prove."""
    if message_id is None:
        return services.turns.run_of(session_id)
    with services.store.snapshot() as read:
        return message_state(read, message_id).run_id


async def report_turn(services: Services, call: Call) -> Reply:
    """Take the beginning or the end of a turn that a session's model takes for a message.

    Args:
        services: The server.
        call: `workflowTurn.report`.

    Returns:
        Whose turn it is, or the domain's refusal.

    Raises:
        Unavailable: As `Writer.submit`.
    """
    payload = call.read(TurnReport)
    session_id = session_of(call)
    command: StartTurn | EndTurn
    if payload.stop_reason is None:
        command = StartTurn(
            run_id=payload.run_id,
            session_id=session_id,
            message_id=payload.workflow_message_id,
            turn_id=payload.workflow_turn_id,
        )
    else:
        command = EndTurn(
            run_id=payload.run_id,
            session_id=session_id,
            message_id=payload.workflow_message_id,
            turn_id=payload.workflow_turn_id,
            stop_reason=payload.stop_reason,
            response_entry_id=payload.response_session_entry_id,
            turn_ms=services.turns.turn_ms(session_id),
            elapsed_ms=services.turns.elapsed_ms(payload.run_id),
        )
    answer = await services.writer.submit(_unremembered(call, command, payload.run_id))
    if answer.error is not None or answer.receipt is None:
        return replied(answer)
    reported = canonical.decode(answer.receipt)
    return replace(
        replied(answer), receipt=TurnReported.model_validate(reported, by_name=True).document()
    )


async def clear_terminal(services: Services, call: Call) -> Reply:
    """Show the end of a session's last run no longer.

    Args:
        services: The server.
        call: `sessionView.clearTerminal`; its run, when it names one, has to be the one shown.

    Returns:
        Whether there was one.

    Raises:
        IdempotencyConflict: The identity was used for another request.
        Unavailable: As `Writer.submit`.
    """
    call.read(ClearTerminal)
    session_id = session_of(call)
    with services.store.snapshot() as read:
        retained = retained_run(read, session_id, services.clock.now_ms())
    is_shown = retained is not None and retained != services.coordinators.cleared(session_id)
    is_meant = is_shown and call.request.run_id in (None, retained)
    if is_meant and retained is not None:
        services.coordinators.clear(session_id, retained)
    receipt = TerminalCleared(cleared=is_meant, run_id=retained if is_meant else None)
    return await remember(services, call.request, receipt.document())


def _unremembered(call: Call, command: Command, run_id: str) -> Order:
    """Return an order that leaves no receipt: a repeated report finds what it reported."""
    return replace(call.order(command), identity=None, run_id=run_id)


def _nothing(_tx: Transaction) -> None:
    """Change nothing: only the place in the queue counts."""
