"""Group commit, receipts and adoption."""

from __future__ import annotations

from functools import partial

from pi_workflows.base.errors import Outcome, Unavailable
from pi_workflows.base.sql import Projection
from pi_workflows.domain.fact import Stored
from pi_workflows.domain.run.control import CancelRun, PauseRun
from pi_workflows.domain.run.events import RunQueueSettled
from pi_workflows.domain.run.start import RestartRun
from pi_workflows.kernel.dispatch import Host
from pi_workflows.kernel.group import Kernel
from pi_workflows.kernel.order import Answer, WorkerIdentity
from projections import route
from tests.kernel.harness import Harness, begin, reserve
from tests.kernel.workflows import WORKFLOWS


def test_a_repeated_request_gets_its_stored_receipt(bench: Harness) -> None:
    """The second sending adopts: one event, the same receipt, `adopted` for `accepted`."""
    start = bench.start()
    first = bench.do(start, identity=bench.client("key"))
    again = bench.do(start, identity=bench.client("key"))
    assert (first.outcome, again.outcome) == (Outcome.ACCEPTED, Outcome.ADOPTED)
    assert (again.receipt, again.revision) == (first.receipt, first.revision)
    assert len(bench.dump("events")) == 1
    assert len(bench.dump("host_commands")) == 1


def test_a_stored_refusal_is_repeated_as_it_was(bench: Harness) -> None:
    """A refusal is final for its request, even when the reason is gone."""
    refused = bench.answer(PauseRun("run-1"), identity=bench.client("key"))
    assert (refused.outcome, refused.code) == (Outcome.NOT_FOUND, "runMissing")
    bench.do(bench.start())
    again = bench.answer(PauseRun("run-1"), identity=bench.client("key"))
    assert (again.outcome, again.code, again.error) == (
        Outcome.NOT_FOUND,
        "runMissing",
        refused.error,
    )


def test_a_key_used_for_something_else_is_a_conflict_and_not_stored(bench: Harness) -> None:
    """The first request keeps its receipt."""
    bench.do(bench.start(), identity=bench.client("key"))
    other = bench.answer(bench.start("run-2"), identity=bench.client("key", b"g" * 32))
    assert (other.outcome, other.code) == (Outcome.CONFLICT, "requestReused")
    assert len(bench.dump("host_commands")) == 1
    assert len(bench.dump("runs")) == 1


def test_one_refused_command_of_a_group_leaves_the_others(bench: Harness) -> None:
    """A group is one transaction, each order in it all or nothing."""
    works = (
        bench.order(bench.start("run-1")),
        bench.order(PauseRun("missing")),
        bench.order(bench.start("run-2")),
    )
    results = bench.kernel.commit(works, bench.clock.now_ms())
    outcomes = [result.outcome for result in results if isinstance(result, Answer)]
    assert outcomes == [Outcome.ACCEPTED, Outcome.NOT_FOUND, Outcome.ACCEPTED]
    assert [row[0] for row in bench.dump("runs")] == ["run-1", "run-2"]


def test_another_servers_epoch_writes_nothing(bench: Harness) -> None:
    """A server that was superseded is refused before anything is decided."""
    stale = Kernel(bench.store, route, Host(bench.host.host_id, bench.host.epoch - 1))
    result = stale.commit((bench.order(bench.start()),), bench.clock.now_ms())[0]
    assert isinstance(result, Answer)
    assert (result.outcome, result.code) == (Outcome.CLAIM_LOST, "ownerChanged")
    assert bench.dump("runs") == []


def test_the_end_of_a_run_and_its_settlement_commit_together(bench: Harness) -> None:
    """No reader ever sees a terminal run whose queue entry is still live."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    answer = bench.do(CancelRun("run-1"), identity=bench.client("key"))
    assert [event.fact.type for event in answer.events][-2:] == [
        "run.queue_settled",
        "effect.applied",
    ]
    views = {event.fact.view.revision for event in answer.events if event.fact.view}
    assert max(views) == answer.views["run-1"]


def test_a_repeated_proposal_gets_the_result_that_it_got(bench: Harness) -> None:
    """A refusal comes with its code again, values with their values; a lost run is not stored."""
    permit = bench.launch(workflow=WORKFLOWS["idempotent"])
    bench.spawn("worker-1", permit)
    start = begin("deploy", node_type="action")
    sent = [(start, None), (start, None), (reserve("deploy"), None), (start, 1)]
    firsts: list[Answer] = []
    for number, (command, revision) in enumerate(sent):
        identity = WorkerIdentity("worker-1", str(number), bytes([number]) * 32)
        ask = partial(
            bench.answer, command, permit=permit, identity=identity, expected_revision=revision
        )
        first, again = ask(), ask()
        firsts.append(first)
        adopted = Outcome.ADOPTED if first.outcome is Outcome.ACCEPTED else first.outcome
        assert (again.outcome, again.code, again.error) == (adopted, first.code, first.error)
        assert (again.values, again.revision) == (first.values, first.revision)
    assert [first.code for first in firsts] == [None, "attemptOpen", None, "staleRevision"]
    assert [row[1] for row in bench.dump("worker_messages")] == ["0", "1", "2"]


class FailingSettlement:
    """Projectors whose disk fails when the queue takes over a result."""

    raise_revision = staticmethod(route.raise_revision)
    apply_flush = staticmethod(route.apply_flush)
    apply_view = staticmethod(route.apply_view)

    def apply_event(self, event: Stored, db: Projection) -> None:
        """Write the rows of every other event."""
        if isinstance(event.fact, RunQueueSettled):
            raise Unavailable("The disk could not be read.", code="storageFault")
        route.apply_event(event, db)


def test_an_end_whose_settlement_fails_leaves_nothing(bench: Harness) -> None:
    """The order that is answered `unavailable` has not ended its run behind the caller's back."""
    bench.do(bench.start())
    before = bench.dump("events")
    failing = Kernel(bench.store, FailingSettlement(), bench.host)
    order = bench.order(CancelRun("run-1"), identity=bench.client("key"))
    (result,) = failing.commit((order,), bench.clock.now_ms())
    assert isinstance(result, Unavailable)
    assert (bench.dump("events"), bench.dump("host_commands")) == (before, [])
    assert bench.submit(order).outcome is Outcome.ACCEPTED  # type: ignore[union-attr] # an answer


def limit_pages(bench: Harness, pages: int) -> None:
    """Let the database grow to this many pages and no further, as a full disk would."""
    connection = bench.store.writer.connection
    authorizer, connection.authorizer = connection.authorizer, None
    connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    connection.authorizer = authorizer


def test_an_order_that_fills_the_disk_takes_no_other_with_it(bench: Harness) -> None:
    """SQLite drops the whole transaction; the large order alone is unavailable, once."""
    bench.do(bench.start("run-0"))
    with bench.store.snapshot() as read:
        pages = read.pages().page_count
    limit_pages(bench, pages + 40)
    large = bench.start("large", run_input={"text": "x" * 500_000})
    works = (
        bench.order(bench.start("run-1")),
        bench.order(large, identity=bench.client("large")),
        bench.order(bench.start("run-2")),
    )
    results = bench.kernel.commit(works, bench.clock.now_ms())
    assert isinstance(results[1], Unavailable)
    assert results[1].reason_code == "diskFull"
    outcomes = [result.outcome for result in results if isinstance(result, Answer)]
    assert outcomes == [Outcome.ACCEPTED, Outcome.ACCEPTED]
    assert [row[0] for row in bench.dump("runs")] == ["run-0", "run-1", "run-2"]
    assert bench.dump("host_commands") == []
    limit_pages(bench, 1_000_000)
    assert bench.do(large, identity=bench.client("large")).outcome is Outcome.ACCEPTED


def test_a_full_disk_answers_unavailable_and_changes_nothing(bench: Harness) -> None:
    """Every order of the group is refused for now, and reads go on."""
    bench.do(bench.start("run-0"))
    with bench.store.snapshot() as read:
        limit_pages(bench, read.pages().page_count)
    works = [
        bench.order(bench.start(f"run-{n}", run_input={"text": "x" * 100_000 + str(n)}))
        for n in range(1, 4)
    ]
    results = bench.kernel.commit(works, bench.clock.now_ms())
    assert {type(result) for result in results} == {Unavailable}
    assert [row[0] for row in bench.dump("runs")] == ["run-0"]
    limit_pages(bench, 1_000_000)
    bench.do(bench.start("run-1"))


def test_an_adopted_restart_answers_like_the_first(bench: Harness) -> None:
    """Under another key too, the caller is told the child's revision and not the parent's."""
    bench.do(bench.start())
    bench.do(CancelRun("run-1"))
    command = RestartRun("run-1", bench.revision())
    first = bench.do(command, identity=bench.client("one"))
    again = bench.do(command, identity=bench.client("two"))
    assert (again.receipt, again.revision) == (first.receipt, first.revision)
