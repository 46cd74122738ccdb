"""What has to happen again and again: heartbeats, renewals of claims, samples of active time.

A claim that has expired is never renewed. A server that slept past its own claim stops in order and
takes a new epoch at its next start, as after a crash: what it slept through is unknown to it, and
the start knows how to find out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Protocol

import trio

from pi_workflows.base.clock import Clock
from pi_workflows.base.errors import OwnershipLost, Unavailable
from pi_workflows.base.limits import (
    ACTIVE_SAMPLE_MS,
    HEARTBEAT_MS,
    RUN_CLAIM_MS,
    RUN_CLAIM_RENEW_MS,
    SERVER_CLAIM_MS,
)
from pi_workflows.base.units import MS_PER_SECOND, NS_PER_MS
from pi_workflows.kernel.order import Chore
from pi_workflows.server.claims import Active, HeldRun
from pi_workflows.server.log import ServerLog
from pi_workflows.server.writer import Writer
from pi_workflows.store import volatile
from pi_workflows.store.transaction import Transaction


class Runs(Protocol):
    """The runs that are worked on."""

    @property
    def runs(self) -> Mapping[str, HeldRun]:
        """Each with its claim, by run ID."""
        ...


class Timers:
    """The server's own clockwork.

    Args:
        runs: The runs that are worked on.
        writer: Where renewals and samples go.
        clock: Wall time for claims, monotonic time for samples.
        log: Told when a claim could not be renewed.
        epoch: The server's epoch.
    """

    def __init__(
        self,
        *,
        runs: Runs,
        writer: Writer,
        clock: Clock,
        log: ServerLog,
        epoch: int,
    ) -> None:
        self._runs = runs
        self._writer = writer
        self._clock = clock
        self._log = log
        self._epoch = epoch

    async def run(self) -> None:
        """Keep the server's claim until cancelled; returns when it has expired.

        A return means that the server must stop in order and start again.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._renew_claims)
            nursery.start_soon(self._sample)
            await self._heartbeat()
            nursery.cancel_scope.cancel()

    async def _heartbeat(self) -> None:
        """Move the end of the server's claim every ten seconds, until it has expired."""
        while True:
            await trio.sleep(HEARTBEAT_MS / MS_PER_SECOND)
            try:
                await self._submit(Chore(self._beat))
            except OwnershipLost:
                break
        self._log.write("server.slept", epoch=self._epoch)

    def _beat(self, tx: Transaction) -> None:
        """Move the end of the server's claim. Raises OwnershipLost when it has none."""
        now_ms = self._clock.now_ms()
        volatile.heartbeat_server(tx, self._epoch, now_ms + SERVER_CLAIM_MS, now_ms)

    async def _renew_claims(self) -> None:
        """Renew every claim on a run and on its effects before half of its life is over."""
        while True:
            await trio.sleep(RUN_CLAIM_RENEW_MS / MS_PER_SECOND)
            held = [run for run in self._runs.runs.values() if not run.is_released]
            if held:
                await self._submit(Chore(partial(self._renew, runs=held)))

    def _renew(self, tx: Transaction, runs: Sequence[HeldRun]) -> None:
        """Renew the claims that still hold; those that do not are noticed by who holds them."""
        now_ms = self._clock.now_ms()
        expires_at_ms = now_ms + RUN_CLAIM_MS
        for run in runs:
            if run.is_released:
                continue
            for permit in (run.permit, *run.effects.values()):
                try:
                    tx.renew_claim(permit, expires_at_ms, now_ms)
                except OwnershipLost as error:
                    self._log.limited("claim.lost", run=run.run_id, code=error.reason_code)
                    run.changed()
                else:
                    if permit is run.permit:
                        run.renewed(expires_at_ms)

    async def _sample(self) -> None:
        """Keep every five seconds how long each open attempt has been active."""
        while True:
            await trio.sleep(ACTIVE_SAMPLE_MS / MS_PER_SECOND)
            active = [
                run.active
                for run in self._runs.runs.values()
                if run.active is not None and not run.active.is_sampled_last
            ]
            if active:
                await self._submit(Chore(partial(self._keep, intervals=active)))

    def _keep(self, tx: Transaction, intervals: Sequence[Active]) -> None:
        """Keep one sample of each interval; the one after a pause is the last."""
        now_ms, now_ns = self._clock.now_ms(), self._clock.monotonic_ns()
        for active in intervals:
            volatile.sample_active_time(
                tx,
                active.attempt_id,
                active.interval_number,
                observed_at_ms=now_ms,
                elapsed_ms=active.elapsed_ns(now_ns) // NS_PER_MS,
            )
            active.is_sampled_last = active.stopped_ns is not None

    async def _submit(self, chore: Chore) -> None:
        """Have it done, unless the store cannot: then the next turn does it."""
        try:
            await self._writer.submit(chore)
        except Unavailable as error:
            self._log.limited("timer.unavailable", code=error.reason_code)
