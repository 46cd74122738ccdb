"""Windows of what grows with a run: its steps, its trace, the progress of its nodes.

Each is a range on a key, so that a page costs the same at any length of the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import RevisionConflict
from pi_workflows.base.limits import CARRIED_BYTES_MAX, PAGE_BYTES_MAX, UPDATE_KEYS_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.base.vocabulary import WindowKind
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.events import decode
from pi_workflows.protocol.views import RunPage
from pi_workflows.views.capture import entries_page, events_page, replay_checkpoint
from pi_workflows.views.facts import RunFacts, run_facts
from pi_workflows.views.follow_ups import follow_ups_page
from pi_workflows.views.graph import graph_at
from pi_workflows.views.heads import Head, json_list, node_heads, step_total
from pi_workflows.views.items import (
    StepRow,
    UpdateRow,
    attempt_of,
    node_of,
    step_item,
    trace_item,
    update_item,
)
from pi_workflows.views.messages import messages_page
from pi_workflows.views.page import Page, around, window
from pi_workflows.views.settings import settings_page
from pi_workflows.views.settlement import settled_seq

SQL: Final = load(__package__, "pages.sql")


class _TraceRow(NamedTuple):
    seq: int
    at_ms: int
    actor_type: str
    event_type: str
    payload: bytes


class _NodeId(NamedTuple):
    value: str


class _Current(NamedTuple):
    update_id: str
    run_revision: int


def run_page(
    read: Read,
    run_id: str,
    kind: WindowKind,
    cursor: int | None,
    expected_revision: int | None = None,
) -> RunPage:
    """Return a window of a run's items.

    Args:
        read: One consistent read.
        run_id: The run.
        kind: What it holds: `steps`; `trace`, or the trace where a step settled,
            `trace_at_step`; `updates`, the newest of each type and key; its `settings`,
            `follow_ups` and `workflow_messages`; what was captured of its sessions,
            `session_entries` and `session_events`.
        cursor: The index of an item, from 0, or of the step; None is the end. In `trace` it is the
            `seq` of the last item that the caller has.
        expected_revision: The presentation revision that the page has to be of.

    Returns:
        `pi-workflows.run-page.v1`. Steps carry the graph as it stood at the cursor, session events
        the replay state just before them.

    Raises:
        NotFound: There is no such run.
        RevisionConflict: The run's view changed since.
    """
    facts = run_facts(read, run_id)
    require_revision(facts, expected_revision)
    page = _page(read, facts, kind, cursor)
    graph = None
    if kind == "steps":
        last = max(0, page.total - 1)
        heads = _heads(read, facts)
        graph = graph_at(read, run_id, heads, last if cursor is None else min(cursor, last))
    found = RunPage(
        run_id=run_id,
        revision=facts.revision,
        kind=kind,
        cursor=cursor,
        start=page.start,
        total=page.total,
        items=tuple(page.documents),
        graph_steps=tuple(graph.steps.documents) if graph else None,
        graph_cursor=graph.cursor if graph else None,
        taken_transitions=graph.transitions if graph else None,
    )
    if kind != "session_events":
        return found
    # Null says that nothing came before.
    replay = replay_checkpoint(read, run_id, page.start)
    return found.model_copy(update={"replay_checkpoint": replay})


def _page(read: Read, facts: RunFacts, kind: WindowKind, cursor: int | None) -> Page:
    """Return the window of a kind around a cursor."""
    run_id = facts.run_id
    match kind:
        case "steps":
            return steps_page(read, run_id, step_total(read, run_id), cursor)
        case "trace":
            return trace_page(read, facts, cursor)
        case "trace_at_step":
            return trace_page(read, facts, _place_of_step(read, facts, cursor))
        case "updates":
            return updates_page(read, run_id, cursor=cursor)
        case "settings":
            return settings_page(read, facts, cursor=cursor)
        case "follow_ups":
            return follow_ups_page(read, run_id, cursor=cursor)
        case "workflow_messages":
            return messages_page(read, run_id, cursor=cursor)
        case "session_entries":
            return entries_page(read, run_id, cursor)
        case "session_events":
            return events_page(read, run_id, cursor)


def require_revision(facts: RunFacts, expected_revision: int | None) -> None:
    """Refuse to read a run's view at another revision than the one asked for."""
    if expected_revision not in (None, facts.revision):
        raise RevisionConflict(
            f"The view of run {facts.run_id} is at revision {facts.revision}.",
            field="expectedRevision",
        )


def _heads(read: Read, facts: RunFacts) -> list[Head]:
    """Return the newest attempt of each node of a run."""
    snapshot = read.document(Snapshot.parse, facts.definition_hash)
    return node_heads(read, facts.run_id, snapshot.nodes)


def _place_of_step(read: Read, facts: RunFacts, step_index: int | None) -> int | None:
    """Return the index in the trace of a step's end; None, the end of all, behind the last step.

    The end of the very attempt is always found: a run has a step only by that event, so that there
    is nothing for which its node's name would have to do.
    """
    if step_index is None or step_index >= step_total(read, facts.run_id):
        return None
    return settled_seq(read, facts, step_index) - 1


def steps_page(
    read: Read, run_id: str, total: int, cursor: int | None, bytes_max: int = PAGE_BYTES_MAX
) -> Page:
    """Return a window of a run's steps.

    Args:
        read: The view's read.
        run_id: The run.
        total: How many steps it has.
        cursor: The index of a step; None is the last.
        bytes_max: Bytes of the items.

    Returns:
        The page.
    """
    places = window(total, cursor)
    rows = read.all(
        StepRow,
        SQL["steps"],
        run_id=run_id,
        start=places.start,
        stop=places.stop,
        carried_bytes=CARRIED_BYTES_MAX,
    )
    return around(total, cursor, [step_item(read, row) for row in rows], bytes_max)


def trace_page(
    read: Read, facts: RunFacts, cursor: int | None, bytes_max: int = PAGE_BYTES_MAX
) -> Page:
    """Return a window of a run's trace.

    Args:
        read: The view's read.
        facts: The run.
        cursor: An index into the trace, which is the `seq` of the item before; None is the end.
        bytes_max: Bytes of the items.

    Returns:
        The page; the total is the run's revision.
    """
    places = window(facts.run_revision, cursor)
    items = trace_items(read, facts, places.start, places.stop)
    return around(facts.run_revision, cursor, items, bytes_max)


def trace_items(read: Read, facts: RunFacts, after: int, through: int) -> list[Json]:
    """Return the events of a run's trace after a number, through another one.

    Args:
        read: The view's read.
        facts: The run.
        after: The `seq` of the event before the first.
        through: The `seq` of the last.
    """
    rows = read.all(
        _TraceRow, SQL["trace"], resource_id=facts.resource_id, start=after, stop=through
    )
    return [_trace_item(read, facts.run_id, row) for row in rows]


def _trace_item(read: Read, run_id: str, row: _TraceRow) -> dict[str, Json]:
    """Return an event as an item; of one that names an attempt alone the node is looked up."""
    fact = decode(row.event_type, row.payload)
    attempt_id = attempt_of(fact)
    node = None
    if attempt_id is not None and node_of(fact) is None:
        node = read.one(_NodeId, SQL["attempt_node"], attempt_id=attempt_id)
    return trace_item(
        run_id,
        row.seq,
        row.at_ms,
        fact,
        actor=row.actor_type,
        node_id=node.value if node is not None else None,
    )


def updates_page(
    read: Read,
    run_id: str,
    bytes_max: int = PAGE_BYTES_MAX,
    *,
    cursor: int | None = None,
) -> Page:
    """Return the newest update of each type and key, in the order in which they were published.

    Args:
        read: The view's read.
        run_id: The run.
        bytes_max: Bytes of the items.
        cursor: The index of one; None is the last.

    Returns:
        The page; the total counts the keys.
    """
    listed = newest_updates(read, run_id)
    places = window(len(listed), cursor)
    rows = update_rows(read, listed[places.start : places.stop])
    items: list[Json] = [update_item(read, run_id, row) for row in rows]
    return around(len(listed), cursor, items, bytes_max)


def newest_updates(read: Read, run_id: str) -> list[str]:
    """Return the IDs of the newest update of each type and key, in the order of publication.

    Args:
        read: The view's read.
        run_id: The run.
    """
    current = read.all(_Current, SQL["current_updates"], run_id=run_id, updates_max=UPDATE_KEYS_MAX)
    current.sort(key=lambda row: row.run_revision)
    return [row.update_id for row in current]


def update_rows(read: Read, update_ids: Iterable[str]) -> list[UpdateRow]:
    """Return updates with their data, in the order of the question."""
    return read.all(
        UpdateRow,
        SQL["updates"],
        update_ids=json_list(update_ids),
        carried_bytes=CARRIED_BYTES_MAX,
    )
