"""Views as clients get them: built in one read, encoded, decoded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias, cast

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.vocabulary import WindowKind
from pi_workflows.protocol.views import RunFilter, RunListPage
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.pages import run_page
from pi_workflows.views.run_list import run_list_page
from pi_workflows.views.run_view import run_view
from tests.kernel.harness import Harness

Document: TypeAlias = dict[str, Json]


def decoded(content: bytes) -> Document:
    """Return a document from its canonical bytes, which must be canonical."""
    return cast("Document", canonical.decode_canonical(content))


def view(bench: Harness, run_id: str = "run-1", *, live: bool = False) -> Document:
    """Return the view of a run, with its runner's process alive or not."""
    process = ProcessFacts(bench.clock.now_ms(), {run_id} if live else frozenset())
    with bench.store.snapshot() as read:
        return decoded(run_view(read, run_id, process).content)


def page(
    bench: Harness, kind: WindowKind, cursor: int | None = None, run_id: str = "run-1"
) -> Document:
    """Return a page of a run."""
    with bench.store.snapshot() as read:
        return decoded(canonical.encode(run_page(read, run_id, kind, cursor).document()))


def listed(
    bench: Harness, *, start: int = 0, limit: int = 100, where: RunFilter | None = None
) -> Document:
    """Return a page of the run list, with no process alive."""
    return decoded(canonical.encode(list_page(bench, start, limit, where).document()))


def list_page(
    bench: Harness, start: int = 0, limit: int = 100, where: RunFilter | None = None
) -> RunListPage:
    """Return a page of the run list as the server has it."""
    process = ProcessFacts(bench.clock.now_ms())
    with bench.store.snapshot() as read:
        return run_list_page(read, process, start=start, limit=limit, where=where)


def at(document: Json, *path: str | int) -> Json:
    """Return what stands in a document at a path."""
    for step in path:
        if isinstance(step, int):
            assert isinstance(document, list), path
            document = document[step]
        else:
            assert isinstance(document, dict), path
            document = document[step]
    return document


def line(names: Sequence[str]) -> list[Document]:
    """Return the edges that lead from each node to the next."""
    return [{"from": here, "to": following} for here, following in pairwise(names)]


def items(document: Document, *path: str | int) -> list[Document]:
    """Return the objects of the list at a path."""
    found = at(document, *path)
    assert isinstance(found, list)
    return [cast("Document", item) for item in found]
