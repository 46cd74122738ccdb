"""Each composite transaction fails at each of its statements: nothing of it is ever left."""

from __future__ import annotations

from typing import Final

import pytest

from pi_workflows.base.errors import OutcomeUnknown, Unavailable
from pi_workflows.kernel.order import Answer
from tests.kernel.composites import COMPOSITES
from tests.kernel.failing import COMMIT, digests, fault_at
from tests.kernel.harness import Harness

# BEGIN, SAVEPOINT, the check of the epoch, a decision, an event with its rows, RELEASE.
_STATEMENTS_MIN: Final = 12
# A server that starts takes the next epoch.
_SERVERS: Final = {"workflow_host_state"}


@pytest.mark.parametrize("name", COMPOSITES)
def test_a_transaction_that_fails_leaves_nothing(bench: Harness, name: str) -> None:
    """Whichever statement fails: no row changes, the same order is taken later, and once only."""
    order = COMPOSITES[name](bench)
    before, number = digests(bench.store), 0
    while True:
        number += 1
        with fault_at(bench.store, number) as fault:
            result = bench.submit(order)
        if fault.failing is None:
            break
        assert isinstance(result, Unavailable), (number, fault.failing, result)
        assert result.reason_code == "storageFault"
        assert not bench.store.writer.connection.in_transaction
        assert digests(bench.store) == before, (number, fault.failing)
    assert number > _STATEMENTS_MIN
    assert isinstance(result, Answer)
    assert result.error is None, result
    assert result.events
    assert digests(bench.store) != before


@pytest.mark.parametrize("name", list(COMPOSITES)[::6])
def test_a_transaction_whose_commit_fails_is_answered_by_nobody(bench: Harness, name: str) -> None:
    """The server ends without an answer; the next one finds the file as it was."""
    order = COMPOSITES[name](bench)
    before = digests(bench.store)
    with fault_at(bench.store, COMMIT), pytest.raises(OutcomeUnknown):
        bench.submit(order)
    bench.store.crash()
    bench.reopen()
    after = digests(bench.store)
    assert {table for table in before if after[table] != before[table]} <= _SERVERS


def test_of_a_group_only_the_order_fails_whose_statement_failed(bench: Harness) -> None:
    """The others of its group are done all the same, once, whichever statement it was."""
    bench.do(bench.start("run-0"))
    number = 0
    while True:
        number += 1
        orders = [bench.order(bench.start(f"run-{number}-{each}")) for each in range(2)]
        with fault_at(bench.store, number) as fault:
            results = bench.kernel.commit(orders, bench.clock.now_ms())
        if fault.failing is None:
            break
        lost = [isinstance(result, Unavailable) for result in results]
        begun = {str(row[0]) for row in bench.dump("runs")}
        assert lost.count(True) <= 1, (number, fault.failing)
        for each, is_lost in enumerate(lost):
            assert (f"run-{number}-{each}" in begun) is not is_lost, (number, fault.failing)
    assert number > 2 * _STATEMENTS_MIN
