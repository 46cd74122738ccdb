"""The run list: newest first, in pages that fit together, without reading a body."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import PAGE_BYTES_MAX
from pi_workflows.base.vocabulary import DisplayStatus
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.run.claim import FailLaunch
from pi_workflows.domain.run.control import CancelRun, PauseRun
from pi_workflows.protocol.views import RunFilter
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.run_list import queue_items, run_list_page
from tests.kernel.harness import Harness, ask, begin, definition, end, finish
from tests.views.reading import at, items, list_page, listed

GATE = definition({"gate": {"type": "checkpoint", "timeoutMs": 0}})


def names(bench: Harness, **where: object) -> list[Json]:
    """Return the runs that a filter lists."""
    found = listed(bench, where=RunFilter.model_validate(where))
    assert at(found, "total") == len(items(found, "items"))
    return [item["runId"] for item in items(found, "items")]


def test_an_item_says_what_a_person_needs(bench: Harness, snapshot: SnapshotAssertion) -> None:
    """Each item has its identity, its times, where it stands and what may be done, and no body."""
    bench.do(bench.start())
    permit = bench.claim()
    bench.do(FailLaunch("run-1", Failure("importError", "secret body")), permit=permit)
    document = listed(bench)
    del document["revision"]
    assert document == snapshot


def test_the_newest_run_comes_first(bench: Harness) -> None:
    """Runs are ordered by when they were accepted, across projects; equal times by ID."""
    for number, project in enumerate(("/a", "/b", "/a", "/c", "/b")):
        bench.clock.advance_ms(number % 2)
        bench.do(bench.start(f"run-{number}", project_path=project))
    # Runs 1 and 2 share a time, and so do 3 and 4.
    assert names(bench) == ["run-4", "run-3", "run-2", "run-1", "run-0"]
    bench.do(CancelRun("run-0"))
    assert names(bench)[-1] == "run-0"


def test_pages_of_one_revision_fit_together(bench: Harness) -> None:
    """At any page size every run is in one page, in the order of the whole list."""
    for number in range(23):
        bench.clock.advance_ms(number % 3 // 2)
        bench.do(bench.start(f"run-{number:02}", project_path=f"/p{number % 4}"))
    whole = names(bench)
    assert len(whole) == 23
    for limit in (1, 2, 7, 22, 23, 100):
        found: list[Json] = []
        revisions = {list_page(bench).revision}
        while len(found) < 23:
            page = listed(bench, start=len(found), limit=limit)
            assert at(page, "total") == 23
            revisions.add(str(at(page, "revision")))
            found += [item["runId"] for item in items(page, "items")]
        assert found == whole
        assert len(revisions) == 1


def test_a_page_is_bounded_in_bytes(bench: Harness) -> None:
    """However many runs are asked for, a page stays within 64 KiB."""
    path = f"/{'p' * 4_000}"
    for number in range(20):
        bench.do(bench.start(f"run-{number:02}", project_path=path))
    found = listed(bench, limit=256)
    assert len(canonical.encode(at(found, "items"))) <= PAGE_BYTES_MAX
    assert 10 < len(items(found, "items")) < 20
    assert at(found, "total") == 20


def test_the_revision_names_the_membership(bench: Harness) -> None:
    """A new run makes another list; a step of a run does not, unless a status is asked for."""
    assert list_page(bench).revision == list_page(bench).revision
    empty = list_page(bench).revision
    permit = bench.launch()
    first = list_page(bench).revision
    queued = list_page(bench, where=RunFilter(status="queued")).revision
    assert first != empty
    bench.do(begin("one"), permit=permit)
    assert list_page(bench).revision == list_page(bench, start=1).revision == first
    assert list_page(bench, where=RunFilter(status="queued")).revision != queued
    bench.do(bench.start("run-2"))
    assert list_page(bench).revision != first


def mixed(bench: Harness) -> None:
    """Bring one run into each state that a list can show."""
    for name in ("queued", "paused", "cancelled"):
        bench.do(bench.start(f"{name}-1", project_path=f"/{name}"))
        bench.clock.advance_ms(1)
    bench.do(PauseRun("paused-1"))
    bench.do(CancelRun("cancelled-1"))
    permit = bench.launch("completed-1", definition({"one": {}}))
    bench.do(begin("one", run_id="completed-1"), permit=permit)
    bench.do(end("one", 1, run_id="completed-1"), finish(1, run_id="completed-1"), permit=permit)
    permit = bench.launch("waiting-1", GATE)
    bench.do(begin("gate", run_id="waiting-1", node_type="checkpoint"), permit=permit)
    bench.do(ask("gate", run_id="waiting-1"), permit=permit)
    bench.launch("running-1")


@pytest.mark.parametrize(
    "status", ["queued", "paused", "cancelled", "completed", "waiting", "running"]
)
def test_a_status_is_what_people_are_told(bench: Harness, status: DisplayStatus) -> None:
    """The filter compares what the list itself shows, live processes included."""
    mixed(bench)
    process = ProcessFacts(bench.clock.now_ms(), {"running-1"})
    with bench.store.snapshot() as read:
        page = run_list_page(read, process, where=RunFilter(status=status))
        everything = run_list_page(read, process)
    found = canonical.decode(canonical.encode(page.document()))
    assert [item["runId"] for item in items({"p": found}, "p", "items")] == [f"{status}-1"]
    shown = canonical.decode(canonical.encode(everything.document()))
    statuses = {
        at(item, "runId"): at(item, "display", "status")
        for item in items({"p": shown}, "p", "items")
    }
    assert statuses[f"{status}-1"] == status


def test_filters_narrow_each_other(bench: Harness) -> None:
    """Prefix, project and status may be given together, in any combination."""
    for number, project in enumerate(("/a", "/a", "/b", "/b")):
        bench.do(bench.start(f"run-{number}", project_path=project))
        bench.do(bench.start(f"other-{number}", project_path=project))
    bench.do(CancelRun("run-0"))
    bench.do(CancelRun("run-2"))
    assert sorted(map(str, names(bench, run_id_prefix="run-"))) == [f"run-{n}" for n in range(4)]
    assert names(bench, run_id_prefix="run-3") == ["run-3"]
    assert names(bench, run_id_prefix="RUN-3") == []
    assert names(bench, run_id_prefix="run-%") == []
    assert len(names(bench, project_path="/a")) == 4
    assert names(bench, project_path="/") == []
    assert names(bench, status="cancelled") == ["run-2", "run-0"]
    assert names(bench, status="cancelled", project_path="/b") == ["run-2"]
    assert names(bench, status="cancelled", run_id_prefix="run-0", project_path="/b") == []
    assert names(bench, status="cancelled", run_id_prefix="run-0") == ["run-0"]
    assert names(bench, status="queued", run_id_prefix="run", project_path="/b") == ["run-3"]
    assert names(bench, status="queued", project_path="/a") == ["run-1", "other-1", "other-0"]


def test_a_page_of_a_status_is_a_part_of_it(bench: Harness) -> None:
    """Start and limit count within the runs of that status, and so does the total."""
    for number in range(5):
        bench.clock.advance_ms(1)
        bench.do(bench.start(f"run-{number}"))
    bench.do(PauseRun("run-2"))
    found = listed(bench, start=1, limit=2, where=RunFilter(status="queued"))
    assert [item["runId"] for item in items(found, "items")] == ["run-3", "run-1"]
    assert (at(found, "start"), at(found, "total")) == (1, 4)


def test_the_queue_lists_the_newest_runs(bench: Harness) -> None:
    """`run.list` gives runs as they stand in the queue, newest first."""
    for number in range(3):
        bench.clock.advance_ms(1)
        bench.do(bench.start(f"run-{number}"))
    bench.do(CancelRun("run-1"))
    with bench.store.snapshot() as read:
        found = queue_items(read, 2)
    assert [(item.run_id, item.status) for item in found] == [
        ("run-2", "queued"),
        ("run-1", "cancelled"),
    ]
