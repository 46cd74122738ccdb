"""Proofs of the operator: slow, rare, in memory, and of one connection for ten minutes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import trio

from pi_workflows.base.clock import Clock
from pi_workflows.base.errors import LimitExceeded
from pi_workflows.base.limits import (
    OPERATOR_ATTEMPT_MS,
    OPERATOR_BACKOFF_MAX_MS,
    OPERATOR_FAILURES_FREE,
    OPERATOR_PROOF_MS,
)
from pi_workflows.base.units import MS_PER_SECOND, NS_PER_MS
from pi_workflows.server.log import ServerLog
from pi_workflows.server.operator_key import read_key, require_key, wrong


@dataclass(frozen=True, slots=True)
class Proof:
    """That a person gave the passphrase on a connection.

    Attributes:
        key_id: The key that it was proved with.
        until_ns: Monotonic time until which it holds.
    """

    key_id: str
    until_ns: int


class Operator:
    """Judges passphrases, one attempt a second for the whole server.

    Args:
        file: `operator.json`; read each time, so that a change counts at once.
        clock: Monotonic time.
        log: Told that an attempt failed, and nothing else.
    """

    def __init__(self, file: Path, clock: Clock, log: ServerLog) -> None:
        self._file = file
        self._clock = clock
        self._log = log
        self._failures = 0
        self._free_at_ns = 0

    async def prove(self, passphrase: str) -> Proof:
        """Judge a passphrase.

        Args:
            passphrase: What a person typed; it is kept nowhere.

        Returns:
            The proof.

        Raises:
            LimitExceeded: `operatorThrottled`: there were too many attempts just now.
            AuthorityDenied: `operatorMissing`, `operatorUnsafe`, `passphraseWrong`.
        """
        key = require_key(self._file)
        await self._take_turn()
        if not await trio.to_thread.run_sync(key.verifies, passphrase):
            self._failed()
            raise wrong()
        self._failures = 0
        until_ns = self._clock.monotonic_ns() + OPERATOR_PROOF_MS * NS_PER_MS
        return Proof(key.key_id, until_ns)

    def holds(self, proof: Proof) -> bool:
        """Whether a proof still counts: in its time, and while its key is the operator's."""
        if self._clock.monotonic_ns() >= proof.until_ns:
            return False
        key = read_key(self._file)
        return key is not None and key.key_id == proof.key_id

    def require(self) -> None:
        """Refuse what needs an operator where there is none.

        Raises AuthorityDenied (`operatorMissing` or `operatorUnsafe`).
        """
        require_key(self._file)

    async def _take_turn(self) -> None:
        """Wait for the next second; refuse who would wait longer."""
        now_ns = self._clock.monotonic_ns()
        wait_ns = max(0, self._free_at_ns - now_ns)
        if wait_ns > OPERATOR_ATTEMPT_MS * NS_PER_MS:
            seconds = -(-wait_ns // (NS_PER_MS * MS_PER_SECOND))
            raise LimitExceeded(
                f"Too many attempts: try again in {seconds} s.", code="operatorThrottled"
            )
        self._free_at_ns = now_ns + wait_ns + OPERATOR_ATTEMPT_MS * NS_PER_MS
        await trio.sleep(wait_ns / (NS_PER_MS * MS_PER_SECOND))

    def _failed(self) -> None:
        """Let the next attempt wait, the longer the more have failed in a row."""
        self._failures += 1
        self._log.limited("operator.refused", failures=self._failures)
        over = self._failures - OPERATOR_FAILURES_FREE
        if over >= 0:
            # 2^18 seconds are beyond the bound; more would be a large number for nothing.
            delay_ms = min(OPERATOR_ATTEMPT_MS << min(over + 1, 18), OPERATOR_BACKOFF_MAX_MS)
            now_ns = self._clock.monotonic_ns()
            self._free_at_ns = max(self._free_at_ns, now_ns + delay_ms * NS_PER_MS)
