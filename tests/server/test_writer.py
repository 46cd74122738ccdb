"""The writer groups what waits, abandons nothing, and answers nobody when it does not know."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import trio
import trio.testing

from pi_workflows.base.errors import Corrupt, NotFound, Outcome, OutcomeUnknown, Unavailable
from pi_workflows.base.limits import (
    GROUP_BYTES_MAX,
    GROUP_COMMANDS_MAX,
    WAL_CHECKPOINT_BYTES,
    WAL_IDLE_MS,
    WRITER_QUEUE_MAX,
)
from pi_workflows.domain.run.control import PauseRun
from pi_workflows.kernel.group import Kernel, Result
from pi_workflows.kernel.order import Answer, Chore, Order, Work
from pi_workflows.server.log import ServerLog
from pi_workflows.server.writer import Writer
from pi_workflows.store.transaction import Transaction
from projections import route
from tests.kernel.harness import Harness
from tests.kernel.rebuilt import assert_rebuilds
from tests.server.clocks import FixedClock


def _nothing(_tx: Transaction) -> None:
    """Do nothing in a transaction."""


class Watched(Kernel):
    """The real kernel, which notes the groups that it was given."""

    groups: list[int]
    fault: Exception | None = None

    def commit(  # noqa: D102 - as the kernel
        self, works: Sequence[Work], now_ms: int, **kwargs: object
    ) -> list[Result]:
        if self.fault is not None:
            raise self.fault
        results = super().commit(works, now_ms, **kwargs)  # type: ignore[arg-type] # passed on
        self.groups.append(len(results))
        return results


class Bench:
    """A writer over a real database.

    Attributes:
        harness: The database and its clock.
        kernel: The kernel, watched.
        writer: The writer.
        log: Where the log lies.
    """

    def __init__(self, directory: Path) -> None:
        """Open a new database."""
        self.harness = Harness(directory)
        self.kernel = Watched(self.harness.store, route, self.harness.host)
        self.kernel.groups = []
        self.log = directory / "server.log"
        log = ServerLog(self.log, self.harness.clock)
        self.clock = FixedClock()
        self.writer = Writer(self.kernel, self.harness.store, self.clock, log)

    def order(self, run_id: str) -> Order:
        """Return the order that starts a run."""
        return self.harness.order(self.harness.start(run_id))

    def close(self) -> None:
        """Compare the log with the rows, and close."""
        assert_rebuilds(self.harness.store)
        self.harness.store.close()


def test_what_waits_is_one_group(state_dir: Path) -> None:
    """Commands that wait together are committed together, at most 64 at once, each answered."""

    async def body() -> None:
        bench = Bench(state_dir)
        answers: dict[int, Answer] = {}

        async def submit(number: int) -> None:
            answers[number] = await bench.writer.submit(bench.order(f"run-{number}"))

        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as callers:
                for number in range(100):
                    callers.start_soon(submit, number)
                await trio.testing.wait_all_tasks_blocked()
                nursery.start_soon(bench.writer.run)
            bench.writer.close()
        assert bench.kernel.groups == [GROUP_COMMANDS_MAX, 100 - GROUP_COMMANDS_MAX]
        assert {answer.outcome for answer in answers.values()} == {Outcome.ACCEPTED}
        report = bench.writer.latency.report()
        assert (report.samples, report.group_max, report.group_mean) == (2, GROUP_COMMANDS_MAX, 50)
        bench.close()

    trio.run(body)


def test_a_group_is_bounded_by_its_bytes(state_dir: Path) -> None:
    """Large commands part into several groups, and one that is too large alone still goes."""

    async def body() -> None:
        bench = Bench(state_dir)
        sizes = [GROUP_BYTES_MAX // 2, GROUP_BYTES_MAX // 2, 1, GROUP_BYTES_MAX + 1, 1]
        handed = [bench.writer.hand_over(Chore(_nothing, size_bytes=size)) for size in sizes]
        bench.writer.close()
        await bench.writer.run()
        for each in handed:
            assert (await each.answer()).outcome is Outcome.ACCEPTED
        assert bench.kernel.groups == [2, 1, 1, 1]
        bench.close()

    trio.run(body)


def test_a_group_is_bounded_by_its_work(state_dir: Path) -> None:
    """After five milliseconds of work the rest waits for the next group, in order."""

    async def body() -> None:
        bench = Bench(state_dir)
        done: list[int] = []

        def slow(number: int) -> Chore:
            def work(_tx: Transaction) -> None:
                bench.clock.advance_ms(2)
                done.append(number)

            return Chore(work)

        for number in range(7):
            bench.writer.hand_over(slow(number))
        bench.writer.close()
        await bench.writer.run()
        assert bench.kernel.groups == [3, 3, 1]
        assert done == list(range(7))
        bench.close()

    trio.run(body)


def test_a_full_queue_is_unavailable(state_dir: Path) -> None:
    """Beyond 1,024 waiting commands one more is refused, and those before it are done."""

    async def body() -> None:
        bench = Bench(state_dir)
        handed = [bench.writer.hand_over(Chore(_nothing)) for _ in range(WRITER_QUEUE_MAX)]
        with pytest.raises(Unavailable) as caught:
            bench.writer.hand_over(Chore(_nothing))
        assert caught.value.reason_code == "writerBusy"
        bench.writer.close()
        await bench.writer.run()
        assert (await handed[-1].answer()).outcome is Outcome.ACCEPTED
        bench.close()

    trio.run(body)


def test_pitfall_24_a_cancelled_caller_abandons_nothing(state_dir: Path) -> None:
    """A caller that no longer waits leaves its command to the writer."""

    async def body() -> None:
        bench = Bench(state_dir)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.writer.submit, bench.order("run-1"))
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        bench.writer.close()
        await bench.writer.run()
        assert bench.harness.revision("run-1") == 1
        bench.close()

    trio.run(body)


def test_a_closed_writer_finishes_and_takes_nothing(state_dir: Path) -> None:
    """After `close` what waits is done, and whoever comes later is told that the server stops."""

    async def body() -> None:
        bench = Bench(state_dir)
        handed = bench.writer.hand_over(bench.order("run-1"))
        bench.writer.close()
        with pytest.raises(Unavailable) as caught:
            await bench.writer.submit(Chore(_nothing))
        assert caught.value.reason_code == "stopping"
        with pytest.raises(Unavailable):
            await bench.writer.between(lambda: None)
        await bench.writer.run()
        assert (await handed.answer()).outcome is Outcome.ACCEPTED
        bench.close()

    trio.run(body)


def test_observers_hear_before_callers(state_dir: Path) -> None:
    """Whoever watches commits has heard of one before its caller goes on."""

    async def body() -> None:
        bench = Bench(state_dir)
        heard: list[str] = []
        bench.writer.observe(lambda answers: heard.extend(answers[0].views))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.writer.run)
            await bench.writer.submit(bench.order("run-1"))
            assert heard == ["run-1"]
            bench.writer.close()
        bench.close()

    trio.run(body)


def test_a_chore_may_refuse(state_dir: Path) -> None:
    """A refusal of a chore reaches its caller, undoes the chore alone, and the writer goes on."""

    async def body() -> None:
        bench = Bench(state_dir)

        def refuse(_tx: Transaction) -> None:
            raise NotFound("There is none.")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.writer.run)
            with pytest.raises(NotFound):
                await bench.writer.submit(Chore(refuse))
            assert (await bench.writer.submit(bench.order("run-1"))).outcome is Outcome.ACCEPTED
            bench.writer.close()
        bench.close()

    trio.run(body)


@pytest.mark.parametrize("fault", [OutcomeUnknown("COMMIT failed"), AssertionError("our bug")])
def test_pitfall_05_an_unknown_outcome_answers_nobody(state_dir: Path, fault: Exception) -> None:
    """When COMMIT may be durable, or we are wrong, the writer ends and no caller gets a reply."""

    async def body() -> None:
        bench = Bench(state_dir)
        bench.kernel.fault = fault
        handed = [bench.writer.hand_over(Chore(_nothing)) for _ in range(3)]
        with pytest.raises(type(fault)):
            await bench.writer.run()
        for each in handed:
            with trio.move_on_after(0) as nobody:
                await each.answer()
            assert nobody.cancelled_caught
        bench.kernel.fault = None
        bench.close()

    trio.run(body)


@pytest.mark.parametrize("how", ["moved", "replaced", "removed"])
def test_pitfall_13_a_file_that_moved_answers_nobody(state_dir: Path, how: str) -> None:
    """A database that is no longer at its name is written by nobody's leave: no reply leaves."""

    async def body() -> None:
        bench = Bench(state_dir)
        file = bench.harness.store.path
        if how == "removed":
            file.unlink()
        else:
            file.rename(file.with_name("elsewhere"))
        if how == "replaced":
            file.write_bytes(b"another")
        handed = bench.writer.hand_over(bench.order("run-1"))
        with pytest.raises(Corrupt) as caught:
            await bench.writer.run()
        assert caught.value.reason_code == "stateMoved"
        with trio.move_on_after(0) as nobody:
            await handed.answer()
        assert nobody.cancelled_caught
        bench.harness.store.crash()

    trio.run(body)


def test_the_log_is_emptied_when_it_is_large(state_dir: Path) -> None:
    """Once the write-ahead log passes 4 MiB it is moved into the database, after the replies."""

    async def body() -> None:
        bench = Bench(state_dir)
        sizes: list[int] = []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.writer.run)
            for number in range(200):
                await bench.writer.submit(bench.order(f"run-{number}"))
                sizes.append(bench.harness.store.wal_bytes())
            bench.writer.close()
        assert max(sizes) > WAL_CHECKPOINT_BYTES / 2
        assert max(sizes) < WAL_CHECKPOINT_BYTES * 1.25
        bench.close()

    trio.run(body)


def test_an_idle_writer_empties_the_log(state_dir: Path) -> None:
    """After two seconds without work the database file holds everything."""

    async def body() -> None:
        bench = Bench(state_dir)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.writer.run)
            await bench.writer.submit(bench.order("run-1"))
            assert bench.harness.store.wal_bytes() > 0
            await trio.sleep(WAL_IDLE_MS / 1_000 + 0.1)
            assert bench.harness.store.wal_bytes() == 0
            bench.writer.close()
        bench.close()

    trio.run(body, clock=trio.testing.MockClock(autojump_threshold=0))


def test_what_needs_the_connection_runs_between_groups(state_dir: Path) -> None:
    """An action of the writer's own runs outside a transaction, and its error is its caller's."""

    async def body() -> None:
        bench = Bench(state_dir)

        def refuse() -> None:
            raise NotFound("There is none.")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(bench.writer.run)
            copied = await bench.writer.between(lambda: bench.harness.store.checkpoint().busy)
            assert copied is False
            with pytest.raises(NotFound):
                await bench.writer.between(refuse)
            answer = await bench.writer.submit(
                bench.harness.order(PauseRun("run-1"), name="run.pause")
            )
            assert answer.outcome is Outcome.NOT_FOUND
            bench.writer.close()
        bench.close()

    trio.run(body)
