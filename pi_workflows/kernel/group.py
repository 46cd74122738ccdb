"""Group commit: what waits goes into one transaction.

Each piece under its own savepoint, answered after COMMIT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from pi_workflows.base.errors import IdempotencyConflict, Outcome, Refused, Unavailable
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.kernel import dispatch
from pi_workflows.kernel.dispatch import Host
from pi_workflows.kernel.order import Answer, Chore, Order, Work
from pi_workflows.kernel.projectors import Projectors
from pi_workflows.store.database import Store
from pi_workflows.store.transaction import Transaction

Result: TypeAlias = Answer | Refused | Unavailable


class _GroupLostError(Exception):
    """The transaction vanished under one piece of work; the others did nothing wrong."""

    def __init__(self, index: int, cause: Unavailable) -> None:
        super().__init__(cause.message)
        self.index = index
        self.cause = cause


class Kernel:
    """The deciding half of the server: it owns no task and no socket.

    Args:
        store: The open database.
        projectors: Where events become rows.
        host: The deciding server.
    """

    def __init__(self, store: Store, projectors: Projectors, host: Host) -> None:
        self._store = store
        self._projectors = projectors
        self.host = host

    def commit(
        self,
        works: Sequence[Work],
        now_ms: int,
        *,
        is_over: Callable[[], bool] = lambda: False,
    ) -> list[Result]:
        """Do everything that waits in one transaction.

        A piece that loses the transaction (disk full, out of memory) is answered `Unavailable`; the
        others run
        again once, alone, in order (decision on group commit).

        Args:
            works: Orders and chores, in order.
            now_ms: The wall time that all of them are judged by.
            is_over: Whether the group has worked long enough; asked after each piece.

        Returns:
            One result for each piece that was begun, at least the first: its answer, what a chore
            refused, or Unavailable; of the last two nothing remains. Nothing happened for the
            pieces after those.

        Raises:
            OutcomeUnknown: COMMIT failed and may be durable: answer nobody, end the process.
            AssertionError: Our bug: nothing of the group remains; answer nobody, end the process.
        """
        try:
            return self._group(works, now_ms, is_over)
        except _GroupLostError as lost:
            return [
                lost.cause if index == lost.index else self._alone(work, now_ms)
                for index, work in enumerate(works)
            ]
        except Unavailable as full:
            if len(works) == 1:
                return [full]
            return [self._alone(work, now_ms) for work in works]

    def _alone(self, work: Work, now_ms: int) -> Result:
        """Do one piece in a transaction of its own."""
        try:
            return self._group((work,), now_ms, lambda: True)[0]
        except _GroupLostError as lost:
            return lost.cause
        except Unavailable as full:
            return full

    def _group(
        self, works: Sequence[Work], now_ms: int, is_over: Callable[[], bool]
    ) -> list[Result]:
        """Do the pieces in one transaction until its time is over, and commit."""
        results: list[Result] = []
        with self._store.transaction() as tx:
            for index, work in enumerate(works):
                results.append(self._one(tx, index, work, now_ms))
                if is_over():
                    break
        return results

    def _one(self, tx: Transaction, index: int, work: Work, now_ms: int) -> Result:
        """Do one piece, all or nothing."""
        try:
            if isinstance(work, Chore):
                return self._chore(tx, work)
            return self._order(tx, work, now_ms)
        except Unavailable as error:
            if tx.lost:
                raise _GroupLostError(index, error) from error
            return error

    def _chore(self, tx: Transaction, chore: Chore) -> Answer | Refused:
        """Do a chore; what it refuses is not remembered."""
        try:
            with tx.savepoint():
                chore.work(tx)
        except Refused as refusal:
            return refusal
        return Answer(outcome=Outcome.ACCEPTED)

    def _order(self, tx: Transaction, order: Order, now_ms: int) -> Answer:
        """Run one order, or adopt what it came to before."""
        try:
            known = dispatch.adopted(tx, order)
        except IdempotencyConflict as conflict:
            # Nothing is stored: the identity belongs to the other request.
            return dispatch.refuse(tx, replace(order, identity=None), conflict, self.host, now_ms)
        if known is not None:
            return known
        try:
            with tx.savepoint():
                answer, follow_up = dispatch.execute(tx, order, self.host, self._projectors, now_ms)
                if follow_up is not None:
                    # In the order's own savepoint: what fails here must leave nothing of either.
                    answer = self._followed(tx, order, answer, follow_up, now_ms)
        except Refused as refusal:
            return dispatch.refuse(tx, order, refusal, self.host, now_ms)
        return answer

    def _followed(
        self, tx: Transaction, order: Order, answer: Answer, follow_up: Command, now_ms: int
    ) -> Answer:
        """Run the command that has to follow an order, before its reply leaves."""
        following = Order(
            name="run.settle_queue",
            commands=(follow_up,),
            actor=Actor("host", self.host.host_id),
            command_id=f"{order.command_id}:settle",
        )
        settled, _ = dispatch.execute(tx, following, self.host, self._projectors, now_ms)
        return replace(
            answer, events=answer.events + settled.events, views={**answer.views, **settled.views}
        )
