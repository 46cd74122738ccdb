"""The run list: newest first, from metadata and claims alone.

The client protocol, "Run list". No body is read: a stored error shows as a fixed phrase.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, NamedTuple

from pi_workflows.base import ids
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import RECEIPT_BYTES_MAX, RUN_LIST_DEFAULT
from pi_workflows.base.sql import Read, SqlValue, load
from pi_workflows.domain.run.state import TERMINAL
from pi_workflows.protocol.runs import QueueItem
from pi_workflows.protocol.views import RunFilter, RunListPage
from pi_workflows.views.facts import ProcessFacts, RunFacts, many_facts
from pi_workflows.views.page import forward

SQL: Final = load(__package__, "run_list.sql")

LAST_CHARACTER: Final = "\U0010ffff"
"""Sorts after every run ID that begins with what stands before it."""

# Enough that two lists never share a name by chance, short enough to stand in a command line.
_REVISION_HEX: Final = 16


class _RunId(NamedTuple):
    value: str


class _Number(NamedTuple):
    value: int


@dataclass(frozen=True, slots=True)
class _Found:
    """The runs of one page, what they are a part of, and how many of them miss rows."""

    runs: list[RunFacts]
    total: int
    untold: int


def run_list_page(
    read: Read,
    process: ProcessFacts,
    *,
    start: int = 0,
    limit: int = RUN_LIST_DEFAULT,
    where: RunFilter | None = None,
) -> RunListPage:
    """Return a page of the run list.

    Args:
        read: One consistent read.
        process: What lives now.
        start: Index of the first run.
        limit: How many runs at most, up to 256; 64 KiB are the other bound.
        where: Which runs are listed; None lists all.

    Returns:
        `pi-workflows.run-list-page.v1`. Pages of one `revision` fit together: none of their runs
        is twice in the list or missing. A caller that asked for another revision gets this page
        with a conflict.
    """
    where = where or RunFilter()
    found = _found(read, process, start, limit, where)
    items = forward([_item(facts, process) for facts in found.runs])
    return RunListPage(
        revision=_revision(read, process, where, start, found),
        start=start,
        total=found.total,
        items=tuple(items),
    )


def untold_count(
    read: Read, process: ProcessFacts, *, start: int, limit: int, where: RunFilter | None
) -> int:
    """Return how many runs a page leaves out because rows that belong to them are missing.

    Args:
        read: One consistent read.
        process: What lives now.
        start: Index of the first run.
        limit: How many runs at most.
        where: Which runs are listed; None lists all.
    """
    return _found(read, process, start, limit, where or RunFilter()).untold


def queue_items(read: Read, limit: int = RUN_LIST_DEFAULT) -> list[QueueItem]:
    """Return the newest runs as they stand in the queue, as many as fit a receipt (`run.list`)."""
    run_ids, _ = _listed(read, 0, limit, RunFilter())
    items = [facts.queue() for facts in many_facts(read, run_ids)]
    shown = len(forward([item.document() for item in items], RECEIPT_BYTES_MAX))
    return items[:shown]


def _found(read: Read, process: ProcessFacts, start: int, limit: int, where: RunFilter) -> _Found:
    """Return the runs of a page."""
    if where.status is None or where.status in TERMINAL:
        run_ids, total = _listed(read, start, limit, where)
        listed = many_facts(read, run_ids)
        return _Found(listed, total, len(run_ids) - len(listed))
    unended = read.all(_RunId, SQL["unended_runs"], **_filter(where))
    facts = many_facts(read, [row.value for row in unended])
    shown = [run for run in facts if run.display(process).status == where.status]
    return _Found(shown[start : start + limit], len(shown), len(unended) - len(facts))


def _filter(where: RunFilter) -> dict[str, SqlValue]:
    """Return the filter that every statement understands which has one."""
    prefix = where.run_id_prefix
    return {
        "project_id": ids.project_id(where.project_path) if where.project_path else None,
        "prefix": prefix,
        "prefix_end": None if prefix is None else prefix + LAST_CHARACTER,
    }


def _listed(read: Read, start: int, limit: int, where: RunFilter) -> tuple[list[str], int]:
    """Return the IDs of a page and how many runs there are, by the narrowest index."""
    place: dict[str, SqlValue] = {"start": start, "items_max": limit}
    values = _filter(where)
    if where.run_id_prefix is not None:
        values["status"] = where.status
        return _paged(read, ("newest_of_prefix", "count_of_prefix"), place, values)
    project: dict[str, SqlValue] = {"project_id": values["project_id"]}
    if where.status is not None:
        project["status"] = where.status
        return _paged(read, ("newest_ended", "count_ended"), place, project)
    if where.project_path is not None:
        return _paged(read, ("newest_of_project", "count_of_project"), place, project)
    return _paged(read, ("newest_runs", "count_runs"), place, {})


def _paged(
    read: Read, statements: tuple[str, str], place: dict[str, SqlValue], values: dict[str, SqlValue]
) -> tuple[list[str], int]:
    """Return a page of one statement's runs, and how many the other one counts."""
    rows, count = statements
    total = read.one(_Number, SQL[count], **values)
    found = read.all(_RunId, SQL[rows], **place, **values)
    return [row.value for row in found], total.value if total is not None else 0


def _revision(
    read: Read, process: ProcessFacts, where: RunFilter, start: int, found: _Found
) -> str:
    """Return the name of the list's membership and order.

    Runs come in at the front and leave by retention, so their number and the newest one tell. Where
    a status decides, every event may change the membership, and so may a process.
    """
    parts = [str(found.total)]
    if where.status is not None:
        last = read.one(_Number, SQL["last_event"])
        parts += [str(last.value if last is not None else 0), *sorted(process.live_runs)]
    elif start == 0:
        parts += [run.run_id for run in found.runs[:1]]
    else:
        parts += _listed(read, 0, 1, where)[0]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:_REVISION_HEX]


def _item(facts: RunFacts, process: ProcessFacts) -> dict[str, Json]:
    """Return a run as the list shows it."""
    display = facts.display(process)
    controls: list[Json] = list(display.controls)
    return {
        "runId": facts.run_id,
        "revision": facts.revision,
        "workflowName": facts.workflow_name,
        "runTitle": facts.title,
        "projectId": facts.project_id,
        "projectPath": facts.project_path,
        "originSessionId": facts.origin_session_id,
        "createdAt": facts.created_at,
        "updatedAt": facts.updated_at,
        "errorCode": facts.queue_error_code,
        "display": {
            "status": display.status,
            "activity": display.activity,
            "reason": display.phrase,
            "controls": controls,
        },
        "manifest": facts.manifest(),
        "live": display.is_live,
        "possiblyInterrupted": display.is_possibly_interrupted,
    }
