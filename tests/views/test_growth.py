"""What people read does not become dearer as a run or the list grows.

How: the plans of all statements are read, and the instructions of SQLite's machine counted, which
do not depend on the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import apsw
import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.limits import SEARCH_ROWS_MAX
from pi_workflows.base.sql import Read, SqlValue, Statement
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.fact import Command
from pi_workflows.protocol.views import RunFilter
from pi_workflows.store.statistics import Totals, measure
from pi_workflows.views.facts import ProcessFacts, run_facts
from pi_workflows.views.launch import launch_facts
from pi_workflows.views.pages import run_page
from pi_workflows.views.run_list import run_list_page
from pi_workflows.views.run_view import run_view
from pi_workflows.views.search import search_page
from pi_workflows.views.session_view import session_work
from pi_workflows.views.settlement import settled_seq
from tests.kernel.harness import Harness, begin, definition, end
from tests.tidy.repository import files
from tests.tidy.statements import SCHEMA, database, statements

T = TypeVar("T")

SHARE_MAX = 0.02
SHORT, LONG = "run-300", "run-1200"
NODES = ("a", "b", "c", "d", "e")
RING = definition(
    {name: {} for name in NODES},
    [{"from": a, "to": b} for a, b in zip(NODES, (*NODES[1:], NODES[0]), strict=True)],
    max_steps=10_000,
)
# Small whatever happens: projects, and what SQLite makes of a statement's own parts.
_SCANNED = {"projects", "CONSTANT ROW", "p", "c"}
# A bounded part of a statement, read from one end: a page of it, or one row.
_BOUNDED = {("newest", "m"), ("unreported", "n")}
# What is not over, one for each run or session at most: these indexes hold nothing else.
_OPEN = {
    "interactive_requests_pending",
    "workflow_turns_open_session",
    "attempt_active_intervals_open",
}
# A count of everything is asked for by nobody who waits for a run; a new server looks once what an
# earlier one left.
_COUNTED = {"state_counts", "server_counts", "count_runs", "untold_ends"}


def scans(connection: apsw.Connection, text: str) -> list[str]:
    """Return the tables that a statement reads from one end, with the plan's line."""
    plan = connection.execute(  # pyright: ignore[reportUnknownMemberType]
        f"EXPLAIN QUERY PLAN {text}", _Nulls()
    )
    lines = [str(row[3]) for row in plan]
    return [
        line
        for line in lines
        if line.startswith("SCAN")
        and "VIRTUAL TABLE" not in line
        and "(subquery" not in line
        and line.split(maxsplit=1)[1].split(" USING ")[0] not in _SCANNED
        and line.rsplit(maxsplit=1)[1] not in _OPEN
    ]


class _Nulls(dict[str, None]):
    """A null for every parameter that a statement names."""

    def __missing__(self, key: str) -> None:
        """Return null."""


def test_no_view_scans_a_table() -> None:
    """Every statement of a view and its patches has an index, save counts of everything."""
    (schema,) = (file.text for file in files() if file.path == SCHEMA)
    assert schema
    connection = database(schema)
    found = {
        statement.name: scans(connection, statement.text)
        for file in files()
        if file.path.startswith(("pi_workflows/views/", "projections/viewer/"))
        and file.path.endswith(".sql")
        for statement in statements(file)
    }
    assert len(found) > 20
    assert {"known", "deltas", "trim", "session_run", "newest_runs"} <= found.keys()
    found.pop("last_event")  # from the end, one row
    for name, part in _BOUNDED:
        assert found.pop(name, [f"SCAN {part}"]) == [f"SCAN {part}"]
    assert {name for name, lines in found.items() if lines} <= _COUNTED
    assert scans(connection, "SELECT * FROM node_attempts")
    assert scans(connection, "SELECT run_id FROM runs WHERE title = :title")
    connection.close()


def cost(bench: Harness, work: Callable[[Read], object]) -> tuple[int, int]:
    """Return the statements and instructions that a read takes."""
    totals = Totals()
    with bench.store.transaction() as tx, measure(bench.store, totals.add):
        work(tx.read)
    return totals.statements, totals.vm_steps


def of(work: Callable[[Read, str], object], run_id: str) -> Callable[[Read], object]:
    """Return the read of one run."""
    return lambda read: work(read, run_id)


def walk(bench: Harness, steps: int) -> str:
    """Take steps around the ring, several in an order; return the run."""
    run_id = f"run-{steps}"
    bench.do(bench.start(run_id, RING, session=f"session-of-{run_id}"))
    permit = bench.relaunch(run_id)
    bench.do(begin("a", run_id=run_id), permit=permit)
    commands: list[Command] = []
    for step in range(steps):
        node, number = NODES[step % 5], step // 5 + 1
        following, next_number = NODES[(step + 1) % 5], (step + 1) // 5 + 1
        commands += [
            end(node, {"step": 1_000_000 + step}, run_id=run_id, number=number),
            begin(following, run_id=run_id, visit=next_number, number=next_number),
        ]
        if len(commands) == 100 or step == steps - 1:
            bench.clock.advance_ms(1)
            bench.do(*commands, permit=permit)
            commands = []
    return run_id


@pytest.fixture(scope="module")
def rings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """A database with a run whose pages are just full, and one that is four times as long."""
    harness = Harness(tmp_path_factory.mktemp("rings") / "state")
    assert (walk(harness, 300), walk(harness, 1_200)) == (SHORT, LONG)
    yield harness
    harness.store.close()


@pytest.mark.slow
def test_a_long_run_is_read_at_the_cost_of_a_short_one(rings: Harness) -> None:
    """Once its pages are full, a run's view, pages and launch take the same work at any length."""
    process = ProcessFacts(rings.clock.now_ms())
    reads: dict[str, Callable[[Read, str], object]] = {
        "view": lambda read, run_id: run_view(read, run_id, process),
        "steps": lambda read, run_id: run_page(read, run_id, "steps", None),
        "trace": lambda read, run_id: run_page(read, run_id, "trace", None),
        "search": lambda read, run_id: search_page(read, run_id, "nothing", ("nodes", "entries")),
        "launch": launch_facts,
        "session": lambda read, run_id: session_work(read, f"session-of-{run_id}", process),
    }
    for name, work in reads.items():
        before, after = (cost(rings, of(work, run_id)) for run_id in (SHORT, LONG))
        assert after[0] == before[0], name
        assert abs(after[1] - before[1]) <= SHARE_MAX * before[1], (name, before, after)


@pytest.mark.slow
def test_the_graph_of_an_early_step_is_found_by_halving(rings: Harness) -> None:
    """Four times the attempts cost two lookups a node more, not four times as many."""
    before = cost(rings, lambda read: run_page(read, SHORT, "steps", 3))
    after = cost(rings, lambda read: run_page(read, LONG, "steps", 3))
    assert after[0] <= before[0] + 2 * len(NODES)


@pytest.mark.slow
@pytest.mark.parametrize("step", [3, 150, 299])
def test_the_end_of_a_step_is_found_by_halving(rings: Harness, step: int) -> None:
    """Four times the events cost two or three lookups more, not four times as many."""

    def find(read: Read, run_id: str) -> object:
        return settled_seq(read, run_facts(read, run_id), step)

    before, after = (cost(rings, of(find, run_id)) for run_id in (SHORT, LONG))
    assert after[0] <= before[0] + 3


@pytest.mark.slow
def test_a_page_of_a_search_is_a_bounded_piece_of_work(rings: Harness) -> None:
    """A page looks at so many steps and no more, from the beginning on and from a cursor on."""
    before = cost(rings, lambda read: search_page(read, SHORT, "nothing"))
    with rings.store.snapshot() as read:
        cursor = search_page(read, LONG, "nothing").next_cursor
    for start in (None, cursor):
        after = cost(rings, lambda read: search_page(read, LONG, "nothing", None, start))  # noqa: B023
        assert after[0] <= before[0]
        assert after[1] <= (1 + SHARE_MAX) * before[1] * SEARCH_ROWS_MAX / 300


@pytest.mark.slow
def test_progress_does_not_hide_the_end_of_a_step(bench: Harness) -> None:
    """What an attempt published is passed over at once, however much it is."""

    def work(run_id: str, count: int) -> tuple[int, int]:
        permit = bench.launch(run_id, RING)
        attempt, data = begin("a", run_id=run_id).attempt_id, Blob.json(1)
        updates = [RecordUpdate(run_id, attempt, "progress", "files", data) for _ in range(count)]
        bench.do(begin("a", run_id=run_id), *updates, permit=permit)
        bench.do(end("a", 1, run_id=run_id), permit=permit)
        return cost(bench, lambda read: settled_seq(read, run_facts(read, run_id), 0))

    before, after = work("run-1", 1), work("run-2", 600)
    # Ten halvings more, each of two lookups that cost the same.
    assert after[0] <= before[0] + 2 * 10
    assert after[1] / after[0] <= 1.5 * before[1] / before[0]


@pytest.mark.slow
def test_progress_is_read_by_key_and_not_by_update(bench: Harness) -> None:
    """An attempt that published a key a thousand times costs what one costs that did it once."""
    permit = bench.launch(workflow=RING)
    bench.do(begin("a"), permit=permit)
    process = ProcessFacts(bench.clock.now_ms())

    def publish(count: int) -> tuple[int, int]:
        attempt = begin("a").attempt_id
        data = [Blob.json({"n": 1_000 + done}) for done in range(count)]
        bench.do(
            *(RecordUpdate("run-1", attempt, "progress", "files", each) for each in data),
            permit=permit,
        )
        return cost(bench, lambda read: run_view(read, "run-1", process))

    # The trace fills its page first.
    publish(300)
    before, after = publish(1), publish(600)
    assert abs(after[1] - before[1]) <= SHARE_MAX * before[1]


class Bodyless:
    """A read that gives rows and refuses bodies."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def one(self, shape: Callable[..., T], statement: Statement, /, **values: SqlValue) -> T | None:
        """Return the only row of a statement that names no content."""
        assert "blobs" not in statement.text, statement.name
        return self._read.one(shape, statement, **values)

    def all(self, shape: Callable[..., T], statement: Statement, /, **values: SqlValue) -> list[T]:
        """Return the rows of a statement that names no content."""
        assert "blobs" not in statement.text, statement.name
        return self._read.all(shape, statement, **values)

    def blob(self, digest: bytes) -> bytes:
        """Refuse."""
        raise AssertionError(digest)

    def document(self, parse: Callable[[bytes], T], digest: bytes) -> T:
        """Refuse."""
        raise AssertionError(parse, digest)


@pytest.mark.slow
def test_the_list_is_read_without_bodies_at_the_cost_of_its_page(bench: Harness) -> None:
    """The first page takes the same work out of 40 runs and out of 400, and touches no content."""
    process = ProcessFacts(bench.clock.now_ms())

    def grow(first: int, last: int) -> tuple[int, int]:
        for number in range(first, last, 2):
            bench.clock.advance_ms(1)
            starts = [
                bench.order(bench.start(f"run-{each:04}", project_path=f"/p{each % 2}"))
                for each in (number, number + 1)
            ]
            bench.kernel.commit(starts, bench.clock.now_ms())
        return cost(bench, lambda read: run_list_page(Bodyless(read), process, limit=20))

    before, after = grow(0, 40), grow(40, 400)
    assert after[0] == before[0]
    # What grows is the count of all, which steps from leaf to leaf of the smallest index.
    assert after[1] <= 1.05 * before[1]
    with bench.store.snapshot() as read:
        for where in (RunFilter(status="queued"), RunFilter(run_id_prefix="run-00")):
            assert run_list_page(Bodyless(read), process, where=where).items
