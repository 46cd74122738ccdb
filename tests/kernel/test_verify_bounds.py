"""A verification costs what the database has, once: in time, in memory, and in words."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from migrations_forbidden import schema_text
from pi_workflows.base import ids
from pi_workflows.base.limits import VIOLATION_RUNS_MAX
from pi_workflows.base.sql import Statement
from pi_workflows.domain.fact import Command
from pi_workflows.domain.run.claim import ClaimRun, MarkReady
from pi_workflows.kernel.comparison import compare
from pi_workflows.kernel.digests import SQL as DIGESTS
from pi_workflows.kernel.findings import Findings
from pi_workflows.kernel.order import Answer, Order
from pi_workflows.kernel.references import KEYS
from pi_workflows.kernel.references import SQL as REFERENCES
from pi_workflows.kernel.rules import SQL as RULES
from pi_workflows.kernel.verify import CODES, verify
from pi_workflows.store.driver import Connection, connect
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.records import Permit
from pi_workflows.store.scratch import create_scratch
from projections import route
from tests.kernel.harness import TOKEN, Harness, begin, end, finish

STATEMENTS = (*RULES.values(), *DIGESTS.values(), *REFERENCES.values(), *KEYS.values())
# What may be read as a whole inside a loop: the one row of a count, and the texts among the values.
SMALL = {"h", "counter", "t", "CONSTANT", "pragma_integrity_check"}
# Statements that sort, in a file when memory does not hold it.
SORTED = {"interval_order", "terminal_messages", "message_entries", "users"}
GROWTH_BYTES_MAX = 24 << 20
# Prints the highest memory of a process of its own; what it inherits at its start is not counted.
MEASURED = """
import re, sys
from pathlib import Path
from pi_workflows.audit.verification import verify_file
found = verify_file(Path(sys.argv[1]), live_directory=None, is_quick=False)
codes = ",".join(sorted(violation.code for violation in found.violations))
status = Path("/proc/self/status").read_text()
print(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1], codes)
"""
# Rows of every form in numbers that no memory may follow: values that are large, receipts and
# captured entries that no digest fits, messages that must be sorted.
BULK = """
CREATE TEMP TABLE number AS
WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 30000)
SELECT n FROM number;
CREATE TEMP TABLE value AS SELECT min(blob_hash) AS digest FROM blobs;
CREATE TEMP TABLE run AS SELECT min(run_id) AS run_id FROM runs;
INSERT INTO blobs
SELECT randomblob(32), 'text/plain', 65536, CAST(printf('%065536d', n) AS BLOB), 1
FROM number WHERE n <= 500;
INSERT INTO host_commands
SELECT printf('%064d', n), 'c', 'run.start', n, randomblob(32), run_id, 1, 'accepted', digest, NULL,
       1, randomblob(32), 1, 1
FROM number, value, run;
INSERT INTO resources VALUES ('session-x', 'session', 'x', 0, 1, 1);
INSERT INTO leases (resource_id) VALUES ('session-x');
INSERT INTO session_segments
SELECT 'x', run_id, NULL, NULL, 's', 'session-x', NULL, 'recording', 30000, 0, zeroblob(32),
       zeroblob(32), NULL, 1, NULL
FROM run;
INSERT INTO session_entries
SELECT 'x', run_id, n, n, printf('%064d', n), digest, 1, 1 FROM number, value, run;
INSERT INTO workflow_messages
SELECT printf('%064d', n), run_id, 's', 'notification', n, digest, n, 'sent',
       printf('%064d', n / 2), NULL, 1, 1, printf('message-%064d', n)
FROM number, value, run;
"""


STEPS: tuple[Callable[[str], tuple[Command, ...]], ...] = (
    lambda name: (begin("one", run_id=name),),
    lambda name: (end("one", name, run_id=name), begin("two", run_id=name)),
    lambda name: (end("two", name, run_id=name),),
    lambda name: (finish(name, run_id=name),),
)


class Step(NamedTuple):
    """A step of SQLite's plan."""

    number: int
    parent: int
    text: str


def plan(statement: Statement) -> list[Step]:
    """Return how SQLite would run a statement."""
    with closing(connect(":memory:")) as connection:
        connection.execute(schema_text())
        values = dict.fromkeys(re.findall(r":(\w+)", statement.text))
        rows = connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", values)
        return [Step(int(str(row[0])), int(str(row[1])), str(row[3])) for row in rows]


def nested(statement: Statement) -> Iterator[str]:
    """Yield each table that is read as a whole for each row of another one."""
    steps = plan(statement)
    parents = {step.number: step for step in steps}
    loops: dict[int, int] = defaultdict(int)
    for step in steps:
        is_loop = step.text.startswith(("SCAN", "SEARCH"))
        name = step.text.split()[1] if is_loop else ""
        # An index that is made for one statement is a table that is read as a whole, too.
        is_whole = "AUTOMATIC" in step.text or (
            step.text.startswith("SCAN") and name not in SMALL and "subquery" not in name
        )
        above = step
        is_inner = loops[step.parent] > 0
        while above.parent in parents:
            above = parents[above.parent]
            is_inner = is_inner or above.text.startswith("CORRELATED")
        if is_whole and is_inner:
            yield f"{statement.name}: {step.text}"
        loops[step.parent] += is_loop


def test_no_table_is_read_for_each_row_of_another() -> None:
    """Time grows with the database: whole tables are read in the outermost loop only."""
    assert [found for statement in STATEMENTS for found in nested(statement)] == []


def test_a_table_that_is_read_again_and_again_is_found() -> None:
    """The test above sees a table that is read as a whole inside a loop or a subquery."""
    start = "SELECT r.run_id FROM runs AS r"
    for rest in (
        "CROSS JOIN run_steps AS s ON s.step_index = r.paused",
        "CROSS JOIN run_steps AS s ON s.step_index > r.paused",
        "WHERE EXISTS (SELECT 1 FROM run_steps AS s WHERE s.step_index = r.paused)",
    ):
        assert len(list(nested(Statement("planted", f"{start} {rest}")))) == 1, rest


def test_what_is_sorted_is_known() -> None:
    """Every other statement goes in the order of an index, and needs no memory to sort."""
    found = {
        statement.name
        for statement in STATEMENTS
        if any("TEMP B-TREE" in step.text for step in plan(statement))
    }
    assert found <= SORTED


def test_no_rule_gives_content_away() -> None:
    """What a rule returns are names: no column of bytes leaves the database."""
    with closing(connect(":memory:")) as connection:
        connection.execute(schema_text())
        for name, statement in RULES.items():
            if ":" not in statement.text:
                connection.execute(f"CREATE TEMP VIEW seen_{name} AS {statement.text}")
                columns = connection.execute(f"PRAGMA table_info(seen_{name})").fetchall()
                assert {column[2] for column in columns} <= {"TEXT", ""}, name


def launched(directory: Path, runs: int) -> Harness:
    """Return a database of runs that completed, made in few transactions."""
    bench = Harness(directory)
    names = [f"run-{number}" for number in range(runs)]

    def commit(order_of: dict[str, Order]) -> None:
        results = bench.kernel.commit(tuple(order_of.values()), bench.clock.now_ms())
        assert all(isinstance(result, Answer) and result.code is None for result in results)

    permits = {
        name: Permit(ids.resource_id("run", name), "host", bench.host.host_id, TOKEN, 1)
        for name in names
    }
    commit({name: bench.order(bench.start(name)) for name in names})
    commit({name: bench.order(ClaimRun(name)) for name in names})
    commit({name: bench.order(MarkReady(name), permit=permits[name]) for name in names})
    for steps in STEPS:
        commit({name: bench.order(*steps(name), permit=permits[name]) for name in names})
    return bench


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of an installation after 130 runs."""
    directory = tmp_path_factory.mktemp("many") / "state"
    launched(directory, 130).store.close()
    return directory / "state.sqlite"


def test_progress_is_told_often(many: Path) -> None:
    """Whatever reads many rows tells so at least each 64."""
    told: dict[str, list[int]] = defaultdict(list)
    with open_inactive(many, live_directory=None) as source:
        found = verify(
            source,
            quick=False,
            scratch=lambda: create_scratch(None),
            projectors=route,
            progress=lambda name, count: told[name].append(count),
        )
    assert found.violations == ()
    assert tuple(told) == found.checked
    for name in ("effectKey", "blobDigest", "eventDigest"):
        counts = told[name]
        assert max(counts) >= 64, name
        steps = [after - before for before, after in itertools.pairwise(counts)]
        assert max(steps) <= 64, name


class Enough(BaseException):
    """Whoever waits for a verification waits no more."""


def test_a_deadline_ends_one_long_statement(many: Path) -> None:
    """SQLite's own check is one statement: the deadline that passes meanwhile interrupts it."""
    looks = itertools.count()
    with open_inactive(many, live_directory=None) as source:
        found = verify(
            source,
            quick=True,
            scratch=lambda: create_scratch(None),
            projectors=route,
            is_over=lambda: next(looks) >= 2,
        )
        assert source.one(int, Statement("again", "SELECT 1")) == 1
    assert next(looks) == 3
    # The third look was inside of `integrity`, which is therefore not among them.
    assert (found.is_partial, found.violations) == (True, ())
    assert found.checked == ("identity", "shape")


def test_who_waits_can_end_one_long_statement(many: Path) -> None:
    """What a look around raises ends the statement, the check and the verification."""
    told: list[tuple[str, int]] = []

    def progress(name: str, count: int) -> None:
        told.append((name, count))
        if told.count(("integrity", 0)) == 2:
            raise Enough

    with (
        open_inactive(many, live_directory=None) as source,
        pytest.raises(Enough),
    ):
        verify(
            source,
            quick=True,
            scratch=lambda: create_scratch(None),
            projectors=route,
            progress=progress,
        )
    assert told[-2:] == [("integrity", 0), ("integrity", 0)]


def test_a_part_is_not_said_to_be_checked(many: Path) -> None:
    """Without content only a part of some codes is looked after, and until a deadline none."""
    with open_inactive(many, live_directory=None) as source:
        quick = verify(source, quick=True, scratch=lambda: create_scratch(None), projectors=route)
    left_out = {"journalDigest", "blobDigest", "eventDigest", "replay"}
    in_part = {"eventShape", "blobMedia", "viewer", "decisionRule"}
    assert set(CODES) - set(quick.checked) == left_out | in_part
    assert len(set(quick.checked)) == len(quick.checked)


def test_a_comparison_tells_its_progress(many: Path) -> None:
    """Each 64 rows of a table are told, and as many differing rows are named as are wanted."""
    told: list[int] = []
    with (
        open_inactive(many, live_directory=None) as source,
        create_scratch(None) as scratch,
        scratch.snapshot() as empty,
    ):
        found = compare(source, empty, rows_max=7, progress=told.append)
        everything = compare(source, empty, rows_max=1_000)
    assert max(told) >= 64
    assert {count % 64 for count in told} == {0}
    assert sum(difference.table == "runs" for difference in found) == 7
    assert sum(difference.table == "runs" for difference in everything) == 130


def test_a_violation_names_a_hundred_runs(many: Path, tmp_path: Path) -> None:
    """However many rows are wrong, the result is bounded and says how many."""
    file = tmp_path / "state.sqlite"
    file.write_bytes(many.read_bytes())
    with closing(connect(str(file))) as connection:
        connection.execute("UPDATE runs SET title = 'forged', error_hash = input_hash")
    with open_inactive(file, live_directory=None) as source:
        found = verify(source, quick=False, scratch=lambda: create_scratch(None), projectors=route)
    for code in ("terminalData", "replay"):
        (violation,) = [each for each in found.violations if each.code == code]
        assert violation.count == 130
        assert len(set(violation.run_ids)) == VIOLATION_RUNS_MAX


def test_owners_are_not_looked_for_without_end() -> None:
    """Of a million violations that name one run, a thousand are asked for it."""
    findings, asked = Findings(), [0]

    def runs() -> tuple[str, ...]:
        asked[0] += 1
        return ("run-1",)

    for _ in range(5_000):
        findings.add("steps", "A step is wrong", runs)
    (violation,) = findings.violations()
    assert (violation.count, violation.run_ids, asked) == (5_000, ("run-1",), [1_000])


def measured(file: Path) -> tuple[int, str]:
    """Return the highest memory of a verification in bytes, and the codes that it found."""
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(file)], check=True, capture_output=True, text=True
    )
    kib, _, codes = done.stdout.strip().partition(" ")
    return int(kib) << 10, codes


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """A file of 60 MB, of large values and of many rows, is verified in a small one's memory."""
    small = launched(tmp_path / "small", 1)
    small.store.close()
    large = launched(tmp_path / "large", 300)
    large.store.close()
    file = tmp_path / "large" / "state.sqlite"
    with closing(connect(str(file))) as connection:
        fill(connection)
    assert file.stat().st_size > 55_000_000
    least, sound = measured(tmp_path / "small" / "state.sqlite")
    most, found = measured(file)
    assert sound == ""
    assert {"blobDigest", "journalDigest", "messageCount", "replay"} <= set(found.split(","))
    assert most - least < GROWTH_BYTES_MAX, f"{most - least:,} bytes"


def fill(connection: Connection) -> None:
    """Put the rows in without waiting for the disk."""
    connection.pragma("synchronous", "OFF")
    connection.pragma("foreign_keys", "OFF")
    connection.execute(f"BEGIN; {BULK} COMMIT").fetchall()
