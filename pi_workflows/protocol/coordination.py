"""A Pi session and its one coordinator: their payloads, and the receipts that answer them.

The client protocol, "Views and subscriptions" and "Session, branch".
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pi_workflows.protocol.views import Subscribed
from pi_workflows.protocol.wire import Count, Id, Maybe, Number, Payload, SessionPayload, WireModel


class ViewSessionWatch(Payload):
    """`view.session.watch`: the current work of a session, now and after each change.

    With `coordinator` the connection also becomes the session's sole coordinator; the former one is
    fenced. `node_cursor` is the index of the first node shown; without it the working node is
    followed.
    """

    subscription_id: Id
    session_id: Id
    coordinator: Maybe[bool] = None
    node_cursor: Maybe[Count] = None


class ViewSessionWindow(Payload):
    """`view.session.window`: which nodes a watched session shows; null follows the working node."""

    subscription_id: Id
    node_cursor: Count | None


class ReportBranch(SessionPayload):
    """`workflowMessage.reportBranch`: what a session's client sees of the branch that it shows."""

    workflow_message_id: Id | None
    pi_session_entry_id: Id | None
    is_idle: bool
    has_pending_messages: bool


class SessionWatched(Subscribed):
    """Receipt of `view.session.watch`; a coordinator gets the epoch that proves it."""

    coordinator_epoch: Maybe[Number] = None


class BranchReported(WireModel):
    """`pi-workflows.branch-report-receipt.v1`: whether the session holds the message."""

    schema_id: Annotated[
        Literal["pi-workflows.branch-report-receipt.v1"], Field(alias="schema")
    ] = "pi-workflows.branch-report-receipt.v1"
    outcome: Literal["present", "absent"]
    workflow_message_id: Id | None
