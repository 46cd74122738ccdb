"""Progress: of the attempt under way only, and within the bound of its run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.limits import UPDATE_KEYS_MAX
from pi_workflows.domain.attempt.boundary import StartAttempt
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.run.claim import LoseRunner
from pi_workflows.kernel.order import Answer
from pi_workflows.store.records import Permit
from tests.kernel.harness import Harness, begin, end
from tests.kernel.rebuilt import assert_rebuilds
from tests.kernel.workflows import WORKFLOWS


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Harness]:
    """A new database, which every test leaves rebuildable and without a violation."""
    harness = Harness(tmp_path)
    yield harness
    assert_rebuilds(harness.store)
    harness.store.close()


def tell(node: str, key: str, value: int = 1, *, attempt: int = 1) -> RecordUpdate:
    """Return the command that records progress of an attempt."""
    attempt_id = ids.attempt_id("run-1", node, attempt)
    return RecordUpdate("run-1", attempt_id, "progress", key, Blob.json({"completed": value}))


def filled(bench: Harness, count: int) -> Permit:
    """Return the permit of a run whose first node has published so many accounts."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    for start in range(0, count, 512):
        keys = range(start, min(count, start + 512))
        bench.do(*(tell("one", f"key-{number}") for number in keys), permit=permit)
    return permit


def test_case_24_an_update_after_its_attempt_is_refused(bench: Harness) -> None:
    """After a timeout, from an older attempt, and from one that its runner lost."""
    permit = bench.launch(workflow=WORKFLOWS["retried"])
    bench.do(begin_retried(1), tell("one", "k"), permit=permit)
    bench.do(end("one", outcome="timed_out"), permit=permit)
    assert bench.answer(tell("one", "k", 2), permit=permit).code == "attemptMismatch"
    bench.do(begin_retried(2), permit=permit)
    assert bench.answer(tell("one", "k", 2), permit=permit).code == "attemptMismatch"
    bench.do(LoseRunner("run-1", 1, counted=False, detail="gone"))
    late = bench.order(tell("one", "k", 2, attempt=2))
    result = bench.submit(late)
    assert isinstance(result, Answer)
    assert result.code == "runNotWorking"
    assert [row[5:7] for row in bench.dump("workflow_updates")] == [("progress", "k")]


def begin_retried(number: int) -> StartAttempt:
    """Return the command that starts the retried node, which has a budget of its own."""
    plain = begin("one", number=number)
    return StartAttempt(
        plain.run_id,
        plain.attempt_id,
        plain.node_path,
        plain.visit,
        plain.attempt_number,
        plain.node_type,
        1_000,
    )


@pytest.mark.parametrize("first", ["x", "y"])
def test_case_25_two_updates_at_the_last_place(bench: Harness, first: str) -> None:
    """One new account fits, whichever comes first; one that is there may always be replaced."""
    permit = filled(bench, UPDATE_KEYS_MAX - 1)
    second = "y" if first == "x" else "x"
    orders = [bench.order(tell("one", key), permit=permit) for key in (first, second, "key-7")]
    results = bench.kernel.commit(tuple(orders), bench.clock.now_ms())
    assert [isinstance(each, Answer) and each.code for each in results] == [
        None,
        "updateKeys",
        None,
    ]
    keys = {(row[5], row[6]) for row in bench.dump("workflow_updates")}
    assert len(keys) == UPDATE_KEYS_MAX
    assert ("progress", second) not in keys


def test_the_bound_is_the_runs_and_not_a_nodes(bench: Harness) -> None:
    """What an earlier node published still counts, and may be replaced by a later one."""
    permit = filled(bench, UPDATE_KEYS_MAX)
    bench.do(end("one", 1), begin("two"), permit=permit)
    assert bench.answer(tell("two", "new"), permit=permit).code == "updateKeys"
    assert bench.do(tell("two", "key-1", 2), permit=permit).code is None
