"""Generated documents: the newest of each run, and none of a run that is not there."""

from __future__ import annotations

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import NotFound
from pi_workflows.base.limits import VIEW_DOCUMENTS_KEPT
from pi_workflows.kernel.order import Chore
from pi_workflows.store.view_content import keep_document
from pi_workflows.views.content import content_chunk
from tests.kernel.harness import START_MS, Harness


def _document(number: int) -> Blob:
    """Return a document of its own."""
    return Blob.json({"number": number})


def _keep(bench: Harness, number: int, run_id: str = "run-1", at_ms: int = START_MS) -> None:
    """Store a document."""
    document = _document(number)
    bench.kernel.commit([Chore(lambda tx: keep_document(tx, run_id, document, at_ms))], at_ms)


def _has(bench: Harness, number: int, run_id: str = "run-1", extension: str = "json") -> bool:
    """Say whether a run's viewers can fetch a document."""
    path = f"artifacts/sha256/{_document(number).hex}.{extension}"
    with bench.store.snapshot() as read:
        try:
            return content_chunk(read, run_id, path, 0).complete
        except NotFound:
            return False


@pytest.mark.parametrize("step_ms", [0, 1])
def test_older_documents_give_way(bench: Harness, step_ms: int) -> None:
    """Of each run the newest stay, within one millisecond too; another run's are its own."""
    for run_id in ("run-1", "run-2"):
        bench.do(bench.start(run_id))
    _keep(bench, 0, "run-2")
    count = VIEW_DOCUMENTS_KEPT + 3
    for number in range(count):
        _keep(bench, number, at_ms=START_MS + number * step_ms)
    newest = range(count - VIEW_DOCUMENTS_KEPT, count)
    assert [number for number in range(count) if _has(bench, number)] == list(newest)
    assert _has(bench, 0, "run-2")


def test_a_document_is_stored_once(bench: Harness) -> None:
    """The same one again changes nothing: neither the row nor those beside it."""
    bench.do(bench.start())
    _keep(bench, 1)
    _keep(bench, 2)
    before = bench.dump("run_view_content")
    _keep(bench, 1, at_ms=START_MS + 1)
    assert bench.dump("run_view_content") == before


def test_run_digest_and_media_type_have_to_match(bench: Harness) -> None:
    """A document is another run's no more than it is a text."""
    for run_id in ("run-1", "run-2"):
        bench.do(bench.start(run_id))
    _keep(bench, 1)
    assert _has(bench, 1)
    assert not _has(bench, 1, "run-2")
    assert not _has(bench, 1, extension="txt")


def test_a_run_that_is_gone_keeps_nothing(bench: Harness) -> None:
    """A document that was built while its run was removed is dropped, and nothing fails."""
    bench.do(bench.start())
    _keep(bench, 1, "run-2")
    assert bench.dump("run_view_content") == []
