"""A search finds what a run says, in order, a bounded piece at a time, and tells what is left."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound, PayloadInvalid
from pi_workflows.base.limits import (
    PAGE_BYTES_MAX,
    PAGE_ITEMS_MAX,
    SEARCH_PAGE_BYTES_MAX,
    SEARCH_ROWS_MAX,
    SEARCH_VALUE_BYTES_MAX,
)
from pi_workflows.base.sql import Read, Statement
from pi_workflows.domain.fact import Command
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.run.claim import FailLaunch
from pi_workflows.domain.run.control import CancelRun
from pi_workflows.protocol.search import SEARCH_KINDS, SearchItem, SearchKind, SearchPage
from pi_workflows.store.records import Permit
from pi_workflows.store.statistics import Totals, measure
from pi_workflows.views.search import search_page
from tests.kernel.harness import START_MS, Harness, begin, definition, end, finish
from tests.views.reading import line

LOOP: Final = definition({"one": {}}, [{"from": "one", "to": "one"}], max_steps=10_000)
SEGMENT: Final = Statement(
    "segment",
    "INSERT INTO session_segments VALUES"
    " ('segment-1', 'run-1', :attempt_id, NULL, 'session-1', :resource_id, NULL, 'recording',"
    " 0, 0, zeroblob(32), zeroblob(32), NULL, 0, NULL)",
)
RESOURCE: Final = Statement(
    "resource", "INSERT INTO resources VALUES ('segment', 'session', 'segment-1', 1, 0, 0)"
)
ENTRY: Final = Statement(
    "entry",
    "INSERT INTO session_entries VALUES"
    " ('segment-1', 'run-1', :seq, :seq, 'entry-' || :seq, :digest, 1, 1700000000000 + :seq)",
)


def page(
    bench: Harness,
    query: str,
    *kinds: SearchKind,
    cursor: str | None = None,
    run_id: str = "run-1",
) -> SearchPage:
    """Return a page of a search."""
    with bench.store.snapshot() as read:
        found = search_page(read, run_id, query, kinds or None, cursor)
    # As it comes to a client.
    return SearchPage.parse(canonical.decode(canonical.encode(found.document())))


def pages(bench: Harness, query: str, *kinds: SearchKind) -> Iterator[SearchPage]:
    """Yield every page of a search."""
    cursor: str | None = None
    while True:
        found = page(bench, query, *kinds, cursor=cursor)
        assert found.cursor == cursor
        yield found
        assert found.next_cursor is None or found.next_cursor != cursor
        cursor = found.next_cursor
        if cursor is None:
            return


def every(bench: Harness, query: str, *kinds: SearchKind) -> list[SearchItem]:
    """Return every match."""
    return [item for found in pages(bench, query, *kinds) for item in found.items]


def take(bench: Harness, outputs: Sequence[Json], *, run_id: str = "run-1") -> Permit:
    """Let one node, which follows itself, give these outputs; its next attempt is open."""
    permit = bench.launch(run_id, LOOP)
    bench.do(begin("one", run_id=run_id), permit=permit)
    commands: list[Command] = []
    for number, output in enumerate(outputs, 1):
        commands += [
            end("one", output, run_id=run_id, number=number),
            begin("one", run_id=run_id, visit=number + 1, number=number + 1),
        ]
    for first in range(0, len(commands), 100):
        bench.do(*commands[first : first + 100], permit=permit)
    return permit


@pytest.fixture
def loose(tmp_path: Path) -> Iterator[Harness]:
    """A database that tests write entries into, which no event tells of."""
    harness = Harness(tmp_path / "state")
    yield harness
    harness.store.close()


def record(bench: Harness, *entries: Json) -> None:
    """Capture entries for the first attempt, as the journal holds them."""
    with bench.store.transaction() as tx:
        tx.execute(RESOURCE)
        attempt_id = ids.attempt_id("run-1", "one", 1)
        tx.execute(SEGMENT, attempt_id=attempt_id, resource_id="segment")
        for seq, entry in enumerate(entries, 1):
            blob = Blob.json(entry)
            tx.put_blob(blob, START_MS)
            tx.execute(ENTRY, seq=seq, digest=blob.digest)


def test_every_kind_is_found_in_the_order_of_the_run(
    loose: Harness, snapshot: SnapshotAssertion
) -> None:
    """Nodes, then steps, then the run itself, then entries, each with where and when it stands."""
    nodes: dict[str, dict[str, Json]] = {"one": {}, "one-more": {}}
    permit = loose.launch(workflow=definition(nodes, [{"from": "one", "to": "one-more"}]))
    loose.do(begin("one"), permit=permit)
    loose.clock.advance_ms(1_000)
    loose.do(end("one", {"text": "number one"}), begin("one-more"), permit=permit)
    loose.clock.advance_ms(1_000)
    failed = end("one-more", outcome="failed")
    loose.do(failed, permit=permit)
    loose.do(finish(outcome="failed"), permit=permit)
    record(loose, {"role": "user", "text": "Is there ONE?"}, {"text": "no"})
    found = page(loose, "One")
    assert found.document() == snapshot
    assert (found.complete, found.next_cursor) == (True, None)
    failure = page(loose, "did not WORK", "errors")
    assert [(item.node_id, item.step_index) for item in failure.items] == [("one-more", 1)]


@pytest.mark.parametrize("kind", SEARCH_KINDS)
def test_a_kind_is_searched_alone(loose: Harness, kind: SearchKind) -> None:
    """Only what is asked for is found, and only that counts as searched."""
    permit = loose.launch(workflow=definition({"one": {}}))
    loose.do(begin("one"), permit=permit)
    loose.do(end("one", "it gave one"), finish("it gave one"), permit=permit)
    record(loose, "entry one")
    found = page(loose, "one", kind)
    assert {item.kind for item in found.items} == ({kind} if kind != "errors" else set())
    assert found.kinds == (kind,)
    assert (found.total_steps, found.total_entries) == (1, 1)
    assert found.searched_steps == (1 if kind in ("errors", "outputs") else 0)
    assert found.searched_entries == (1 if kind == "entries" else 0)
    assert found.complete


def test_a_node_that_never_started_is_found(bench: Harness) -> None:
    """A name is a match without an attempt; one that runs has its newest attempt."""
    nodes: dict[str, dict[str, Json]] = {"deploy": {}, "undeploy": {}}
    permit = bench.launch(workflow=definition(nodes, [{"from": "deploy", "to": "undeploy"}]))
    bench.do(begin("deploy"), permit=permit)
    running, never = page(bench, "DEPLOY", "nodes").items
    assert running.attempt_id == ids.attempt_id("run-1", "deploy", 1)
    assert (running.step_index, running.at) == (None, START_MS)
    assert (never.node_id, never.attempt_id, never.at) == ("undeploy", None, None)
    assert (never.excerpt, never.match_start, never.match_end) == ("undeploy", 2, 8)


def test_what_only_the_run_says_is_found(bench: Harness) -> None:
    """An error of the run that no step has is a match without a node."""
    permit = bench.launch(workflow=definition({"one": {}}))
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", "part"), finish(outcome="failed"), permit=permit)
    (item,) = page(bench, "it did NOT work").items
    assert (item.kind, item.node_id, item.step_index) == ("errors", None, None)
    assert item.at == START_MS


@pytest.mark.parametrize("outcome", ["completed", "failed"])
def test_what_the_last_step_says_is_found_once(bench: Harness, outcome: str) -> None:
    """The run's output is its last step's, and so is its error in most runs."""
    permit = bench.launch(workflow=definition({"one": {}}))
    bench.do(begin("one"), permit=permit)
    settled = end("one", "work", outcome="ok" if outcome == "completed" else "failed")
    bench.do(settled, finish("work", outcome=outcome), permit=permit)
    (item,) = page(bench, "work").items
    assert item.step_index == 0


def test_why_a_run_is_parked_is_found(bench: Harness) -> None:
    """The error of its place in the queue counts as the run's."""
    bench.do(bench.start())
    bench.do(FailLaunch("run-1", Failure("importError", "no module yaml")), permit=bench.claim())
    (item,) = page(bench, "Module", "errors").items
    assert (item.node_id, item.attempt_id) == (None, None)
    assert "no module yaml" in item.excerpt
    bench.do(CancelRun("run-1"))
    assert page(bench, "Module", "errors").complete


def test_a_value_is_shown_by_its_first_match_in_one_short_line(bench: Harness) -> None:
    """The excerpt is at most 160 characters without a line break, and marks the match."""
    take(bench, [{"text": "a\n" * 500 + "the\tNeedle\nhere, needle" + " z" * 500}])
    (item,) = page(bench, "needle").items
    assert len(item.excerpt) == 160
    assert item.excerpt[item.match_start : item.match_end] == "Needle"
    assert "the Needle here, needle z" in item.excerpt
    assert "\n" not in item.excerpt


def test_a_text_output_is_searched_as_it_is(bench: Harness) -> None:
    """Escapes of JSON are read, and a query may stand across what they stand for."""
    take(bench, ['He said "no space"\n', {"C:\\new": 17}])
    assert [item.step_index for item in every(bench, '"NO SPACE"\n')] == [0]
    assert [item.step_index for item in every(bench, "c:\\new")] == [1]
    assert [item.step_index for item in every(bench, ":17")] == [1]


def test_a_large_value_is_searched_in_its_beginning(bench: Harness) -> None:
    """What stands behind the searched part is not found, and the search says that it is not whole.

    A value whose beginning holds a match has been told of.
    """
    filler = "x" * SEARCH_VALUE_BYTES_MAX
    take(bench, [f"early {filler}", f"{filler} late", "late"])
    found = list(pages(bench, "LATE", "outputs"))
    assert [item.step_index for each in found for item in each.items] == [2]
    assert found[-1].next_cursor is None
    assert (found[-1].truncated_values, found[-1].complete) == (2, False)
    assert [each.truncated_values for each in found] == sorted(
        each.truncated_values for each in found
    )
    assert [item.step_index for item in every(bench, "early")] == [0]
    assert list(pages(bench, "early", "outputs"))[-1].truncated_values == 1


def test_a_page_reads_a_bounded_number_of_bytes(bench: Harness) -> None:
    """Values are read until the bytes of a page are; a larger one is a page of its own."""
    share = SEARCH_PAGE_BYTES_MAX // 4
    take(bench, ["x" * share] * 10 + ["y" * (2 * SEARCH_PAGE_BYTES_MAX)] + ["z"])
    steps = [each.searched_steps for each in pages(bench, "nothing", "outputs")]
    assert steps == [3, 6, 9, 10, 11, 12]


@pytest.mark.slow
def test_a_page_looks_at_a_bounded_number_of_steps(bench: Harness) -> None:
    """A search goes on where its last page ended, to the end, and leaves out no step."""
    total = SEARCH_ROWS_MAX + 5
    take(bench, [{"n": number} for number in range(total)])
    found = list(pages(bench, "nothing"))
    assert [each.searched_steps for each in found] == [SEARCH_ROWS_MAX, total]
    assert [each.complete for each in found] == [False, True]
    assert {each.total_steps for each in found} == {total}
    hits = [item.step_index for item in every(bench, "n")]
    assert hits == [None, *range(total)]


def test_a_step_may_be_split_between_pages(bench: Harness) -> None:
    """An error at the end of a page and the output of the same step in the next are found once."""
    permit = take(bench, ["small"])
    output = Blob.json("needle" + "x" * SEARCH_PAGE_BYTES_MAX)
    failed = replace(end("one", number=2, outcome="failed"), output=output)
    bench.do(replace(failed, failure=Failure("nodeFailed", "a needle")), permit=permit)
    found = list(pages(bench, "needle"))
    assert [[(i.kind, i.step_index) for i in each.items] for each in found] == [
        [("errors", 1)],
        [("outputs", 1)],
    ]
    assert [each.searched_steps for each in found] == [1, 2]


def test_a_page_of_matches_is_bounded(loose: Harness) -> None:
    """Matches come in pages of at most 256 and 64 KiB, each of them once, in order."""
    take(loose, [f"needle {number} " + "ü" * 200 for number in range(400)])
    record(loose, *[f"needle {number}" for number in range(300)])
    found = list(pages(loose, "needle"))
    for each in found:
        assert 0 < len(each.items) <= PAGE_ITEMS_MAX
        items: list[Json] = [item.document() for item in each.items]
        assert len(canonical.encode(items)) <= PAGE_BYTES_MAX
    items_found = [item for each in found for item in each.items]
    assert [item.step_index for item in items_found[:400]] == list(range(400))
    assert [item.entry_seq for item in items_found[400:]] == list(range(1, 301))
    assert (found[-1].searched_entries, found[-1].total_entries) == (300, 300)


def test_many_nodes_come_in_pages(bench: Harness) -> None:
    """More names than a page holds go on in the next one."""
    names = [f"node{number:04}" for number in range(600)]
    bench.do(bench.start(workflow=definition({name: {} for name in names}, line(names))))
    found = list(pages(bench, "NODE", "nodes"))
    assert len(found) == 3
    assert [item.node_id for each in found for item in each.items] == names


@pytest.mark.parametrize("seed", range(4))
def test_pages_together_are_a_straight_look(bench: Harness, seed: int) -> None:
    """However matches and long values follow one another, the pages hold what one look finds."""
    draw = random.Random(seed)  # noqa: S311 - a walk, no secret
    filler = "x" * (SEARCH_PAGE_BYTES_MAX // 8)
    texts = [draw.choice(["", "a", "needle", f"a NEEDLE {filler}", filler]) for _ in range(60)]
    take(bench, list(texts))
    found = list(pages(bench, "Needle", "errors", "outputs"))
    assert len(found) > 3
    wanted = [at for at, text in enumerate(texts) if "needle" in text.lower()]
    assert [item.step_index for each in found for item in each.items] == wanted


def test_a_cursor_belongs_to_its_search(bench: Harness) -> None:
    """Another query, other kinds, another run and other text are refused."""
    for run_id in ("run-1", "run-2"):
        take(bench, ["x" * SEARCH_PAGE_BYTES_MAX] * 3, run_id=run_id)
    cursor = page(bench, "q").next_cursor
    assert cursor is not None
    assert page(bench, "q", cursor=cursor).cursor == cursor
    bad: list[Callable[[], SearchPage]] = [
        lambda: page(bench, "other", cursor=cursor),
        lambda: page(bench, "q", "outputs", cursor=cursor),
        lambda: page(bench, "q", cursor=cursor, run_id="run-2"),
        lambda: page(bench, "q", cursor=f"9{cursor[1:]}"),
        lambda: page(bench, "q", cursor="0"),
    ]
    for ask in bad:
        with pytest.raises(PayloadInvalid) as refused:
            ask()
        assert (refused.value.reason_code, refused.value.field) == ("searchCursor", "cursor")


def test_an_unknown_run_cannot_be_searched(bench: Harness) -> None:
    """A run that does not exist is named, and not shown as one without matches."""
    with pytest.raises(NotFound):
        page(bench, "x", run_id="ghost")


@pytest.mark.slow
def test_a_search_costs_the_same_beside_many_runs(bench: Harness) -> None:
    """Other runs, however many and however alike, add nothing to the work of a page."""

    def cost(query: str) -> tuple[int, int]:
        totals = Totals()
        with bench.store.transaction() as tx, measure(bench.store, totals.add):
            found: Read = tx.read
            search_page(found, "run-1", query)
        return totals.statements, totals.vm_steps

    take(bench, [{"n": number} for number in range(50)])
    before = cost("nothing")
    for run in range(2, 12):
        take(bench, [{"n": number} for number in range(50)], run_id=f"run-{run}")
    after = cost("nothing")
    assert after[0] == before[0]
    assert after[1] <= 1.02 * before[1]
