"""Reads of runs, and the subscriptions that follow them."""

from __future__ import annotations

from pi_workflows.base.errors import Outcome
from pi_workflows.base.limits import RUN_LIST_DEFAULT
from pi_workflows.kernel.order import Chore
from pi_workflows.protocol.broadcast import Broadcast
from pi_workflows.protocol.envelope import EventKind
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.runs import RunList
from pi_workflows.protocol.search import ViewSearch
from pi_workflows.protocol.views import (
    Subscribed,
    Unsubscribed,
    ViewContent,
    ViewPage,
    ViewRunsPage,
    ViewRunsWatch,
    ViewRunUnwatch,
    ViewRunWatch,
)
from pi_workflows.server.hub import SessionWindow, Subscription
from pi_workflows.server.operations.call import Call, shown
from pi_workflows.server.services import Services
from pi_workflows.store.view_content import keep_document
from pi_workflows.views.aggregate import run_aggregate
from pi_workflows.views.content import content_chunk
from pi_workflows.views.facts import ProcessFacts, run_facts
from pi_workflows.views.pages import run_page
from pi_workflows.views.run_list import queue_items, run_list_page
from pi_workflows.views.run_patch import run_patch
from pi_workflows.views.run_view import RunView, run_view
from pi_workflows.views.search import search_page
from pi_workflows.views.session_view import Coordination, SessionWork, session_work


def process_facts(services: Services) -> ProcessFacts:
    """Return what no database holds, as it is now."""
    return ProcessFacts(
        services.clock.now_ms(),
        services.runners.live_runs(),
        services.coordinators.busy_sessions(),
    )


async def run_get(services: Services, call: Call) -> Reply:
    """Return the run view, for `view.run.get` and `run.status`. Raises NotFound."""
    view = _run_view(services, call.run_id)
    return shown(view.document, revision=view.revision)


async def run_watch(services: Services, call: Call) -> Reply:
    """Begin to tell a connection about a run.

    Raises:
        NotFound: There is no such run; nothing was begun.
        LimitExceeded: The connection has too many subscriptions.
    """
    payload = call.read(ViewRunWatch)
    with services.store.snapshot() as read:
        run_facts(read, call.run_id)
    # Nothing is awaited from here on: the reply leaves before the first event.
    call.session.subscribe(payload.subscription_id, call.run_id, revision=payload.revision)
    return shown(Subscribed(subscribed=True))


async def runs_watch(_services: Services, call: Call) -> Reply:
    """Begin to tell a connection about the run list. Raises LimitExceeded."""
    payload = call.read(ViewRunsWatch)
    call.session.subscribe(payload.subscription_id, None, limit=payload.limit)
    return shown(Subscribed(subscribed=True))


async def unwatch(_services: Services, call: Call) -> Reply:
    """End a subscription of any kind."""
    call.session.unsubscribe(call.read(ViewRunUnwatch).subscription_id)
    return shown(Unsubscribed(subscribed=False))


async def runs_page(services: Services, call: Call) -> Reply:
    """Return a page of the run list; of another revision than asked for it is a conflict."""
    payload = call.read(ViewRunsPage)
    with services.store.snapshot() as read:
        page = run_list_page(
            read,
            process_facts(services),
            start=payload.cursor or 0,
            limit=payload.limit or RUN_LIST_DEFAULT,
            where=payload.filter,
        )
    if payload.revision not in (None, page.revision):
        return Reply(Outcome.CONFLICT, None, page.document(), "The run list changed.")
    return shown(page)


async def run_list(services: Services, call: Call) -> Reply:
    """Return the newest runs as they stand in the queue."""
    payload = call.read(RunList)
    with services.store.snapshot() as read:
        items = queue_items(read, payload.limit or RUN_LIST_DEFAULT)
    return shown([item.document() for item in items])


async def page(services: Services, call: Call) -> Reply:
    """Return a window of a run's steps, of its trace or of its progress, or all that it gave.

    Raises:
        NotFound: There is no such run.
        RevisionConflict: Its view is at another revision than the one asked for.
        LimitExceeded: What it gave is too large for one document.
        Unavailable: As `Writer.submit`.
    """
    payload = call.read(ViewPage)
    if payload.kind == "aggregate":
        return await _aggregate(services, call.run_id, payload.expected_revision)
    with services.store.snapshot() as read:
        found = run_page(read, call.run_id, payload.kind, payload.cursor, payload.expected_revision)
    return shown(found, revision=found.revision)


async def _aggregate(services: Services, run_id: str, expected_revision: int | None) -> Reply:
    """Build the document of all that a run gave, and refer to it when it can be fetched."""
    with services.store.snapshot() as read:
        aggregate = run_aggregate(read, run_id, expected_revision)
    document, now_ms = aggregate.content, services.clock.now_ms()
    await services.writer.submit(
        Chore(
            lambda tx: keep_document(tx, run_id, document, now_ms),
            size_bytes=len(document.content),
        )
    )
    return shown(aggregate.page, revision=aggregate.revision)


async def content(services: Services, call: Call) -> Reply:
    """Return a part of a value that a view named.

    Raises:
        NotFound: The run names no such value.
        PayloadInvalid: The path is no reference's, or the offset lies behind the end.
    """
    payload = call.read(ViewContent)
    with services.store.snapshot() as read:
        chunk = content_chunk(read, call.run_id, payload.path, payload.offset)
    return shown(chunk)


async def search(services: Services, call: Call) -> Reply:
    """Return a page of what a search finds in a run.

    Raises:
        NotFound: There is no such run.
        PayloadInvalid: The cursor is none of this search.
    """
    payload = call.read(ViewSearch)
    with services.store.snapshot() as read:
        found = search_page(read, call.run_id, payload.query, payload.kinds, payload.cursor)
    return shown(found, revision=found.revision)


def news(services: Services, subscription: Subscription) -> Broadcast:
    """Build the newest event of a subscription.

    Args:
        services: The server.
        subscription: What is watched.

    Returns:
        What changed in its run since the revision that the client has, or a snapshot where that
        cannot be told, at the presentation revision; or the session's work, or the first page of
        the run list, numbered by subscription.

    Raises:
        NotFound: The run is gone.
        WorkflowsError: The view cannot be built.
    """
    if subscription.window is not None:
        return _session_news(services, subscription, subscription.window)
    run_id = subscription.run_id
    if run_id is None:
        with services.store.snapshot() as read:
            listed = run_list_page(
                read, process_facts(services), limit=subscription.limit or RUN_LIST_DEFAULT
            )
        number = subscription.sent_total + 1
        return Broadcast.of(EventKind.RUNS, listed.document(), revision=number)
    patch = _patch(services, subscription, run_id)
    return patch or services.hub.view(run_id, lambda: _snapshot(services, run_id))


def _session_news(
    services: Services, subscription: Subscription, window: SessionWindow
) -> Broadcast:
    """Build the event of a watched session."""

    def build() -> SessionWork:
        with services.store.snapshot() as read:
            return session_work(
                read,
                window.session_id,
                process_facts(services),
                window.node_cursor,
                services.coordinators.cleared(window.session_id),
            )

    # Only who follows the working node sees the same as others do.
    is_shared = window.node_cursor is None
    work = services.hub.work(window.session_id, build) if is_shared else build()
    coordinator = services.coordinators.of(window.session_id)
    coordination = Coordination()
    if coordinator is not None:
        coordination = Coordination(
            epoch=coordinator.epoch,
            is_own=coordinator.connection_id == subscription.connection_id,
            needs_report=coordinator.branch is None,
        )
    number = subscription.sent_total + 1
    return Broadcast.of(EventKind.SESSION_SNAPSHOT, work.document(coordination), revision=number)


def _patch(services: Services, subscription: Subscription, run_id: str) -> Broadcast | None:
    """Return what changed in a run since the client's revision, where that can be told."""
    revision = subscription.revision
    if revision is None:
        return None

    def build() -> Broadcast | None:
        with services.store.snapshot() as read:
            patch = run_patch(read, run_id, revision, process_facts(services))
        if patch is None:
            return None
        return Broadcast.of(
            EventKind.RUN_PATCH, patch.document, revision=patch.to_revision, run_id=run_id
        )

    return services.hub.patch(run_id, revision, build)


def _snapshot(services: Services, run_id: str) -> Broadcast:
    """Build the event of a whole run as it is now."""
    view = _run_view(services, run_id)
    return Broadcast.of(
        EventKind.RUN_SNAPSHOT, view.document, revision=view.revision, run_id=run_id
    )


def _run_view(services: Services, run_id: str) -> RunView:
    """Build the view of a run as it is now."""
    with services.store.snapshot() as read:
        return run_view(read, run_id, process_facts(services))
