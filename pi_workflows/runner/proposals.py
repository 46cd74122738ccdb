"""What this runner proposes: boundaries that go ahead, and commands that are waited for.

A boundary is sent at once when nothing is unanswered; while something is, boundaries collect and
leave together with the next answer. So the server commits what a slow disk lets it, and pays once
for many steps.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import trio

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.base.limits import PROPOSAL_COMMANDS_MAX, PROPOSALS_AHEAD_MAX
from pi_workflows.protocol import frames
from pi_workflows.protocol.runner import SCHEMA, Result
from pi_workflows.runner.channel import Channel
from pi_workflows.runner.ending import EXIT_DONE, EXIT_LOST, Ending

# A boundary is at most two commands.
_HELD_COMMANDS_MAX: Final = PROPOSAL_COMMANDS_MAX - 2
# With one more boundary of inline values and messages this stays far below a frame.
_HELD_BYTES_MAX: Final = 256 * 1_024


@dataclass(slots=True)
class _Sent:
    """A proposal without an answer.

    Attributes:
        seq: Its number.
        may_be_refused: Whether a refusal is an answer for the author, not the end of this runner.
        leaves: Its acceptance ends this runner.
        answered: Set when the answer is there, if somebody waits for it.
        result: The answer.
    """

    seq: int
    may_be_refused: bool = False
    leaves: bool = False
    answered: trio.Event | None = None
    result: Result | None = None


class Proposals:
    """The proposals of one runner generation, in order."""

    def __init__(
        self, channel: Channel, ending: Ending, *, ahead_max: int = PROPOSALS_AHEAD_MAX
    ) -> None:
        """Begin with proposal 1.

        Args:
            channel: Where they go; its `result` frames are given to `answered`.
            ending: What a lost claim or a refused boundary ends.
            ahead_max: How many may be unanswered.
        """
        self._channel = channel
        self._ending = ending
        self._ahead_max = ahead_max
        self._changed_in_thread = threading.Condition()
        self._changed = trio.Event()
        self._asking = trio.Lock()
        self._unanswered: deque[_Sent] = deque()
        self._last_seq = 0
        self._held: list[Json] = []
        self._held_bytes = 0

    def add(self, commands: Sequence[Json], *, content_bytes: int, must_follow: bool) -> None:
        """Propose a boundary without waiting for its answer. May be called from any thread.

        Once this runner's end is decided nothing new leaves it: the boundary is held for good.

        Args:
            commands: One or two; nothing follows but in this order.
            content_bytes: How much of the frame their values take.
            must_follow: They name content that was put, so they may not be held back.

        The caller has waited for room.
        """
        with self._changed_in_thread:
            self._held += commands
            self._held_bytes += content_bytes
            if self._ending.is_decided:
                return
            is_full = len(self._held) > _HELD_COMMANDS_MAX or self._held_bytes > _HELD_BYTES_MAX
            if not self._unanswered or is_full or must_follow:
                self._send_held()

    async def room(self) -> None:
        """Wait until one more boundary may be added."""
        await self._until(lambda: self._has_room(1))

    def room_in_thread(self) -> None:
        """Do the same in a thread, which waits until the process leaves once its end is decided."""
        with self._changed_in_thread:
            self._changed_in_thread.wait_for(
                lambda: self._has_room(1) and not self._ending.is_decided
            )

    async def all_answered(self) -> None:
        """Send what is held back and wait until no proposal is unanswered."""
        await self._until(self._is_idle)

    async def unanswered_are_answered(self) -> None:
        """Wait until what was sent is answered; what is held back stays so."""
        await self._until(self._is_answered)

    async def conclude(self, commands: Sequence[Json], *, leaves: bool = False) -> Result:
        """Propose commands after every earlier answer is there, and wait for theirs.

        Args:
            commands: What must not run ahead of answers.
            leaves: Their acceptance ends this runner, with nothing left to do.

        Returns:
            The answer, which is not a refusal: those end this runner.
        """
        await self.all_answered()
        return await self._asked(commands, leaves=leaves)

    async def reserve(self, command: Json) -> Result:
        """Propose the reservation of an effect and return its answer, which may be a refusal."""
        await self.all_answered()
        return await self._asked((command,), may_be_refused=True)

    async def update(self, command: Json) -> Result:
        """Propose an update, alone, and return its answer, which may be a refusal."""
        async with self._asking:
            # What is held back goes first, in a proposal of its own.
            await self._until(lambda: self._has_room(2))
            return await self._asked((command,), may_be_refused=True)

    def answered(self, result: Result) -> None:
        """Take an answer from the channel.

        Raises:
            ProtocolViolation: It answers something else than the oldest unanswered proposal.
        """
        with self._changed_in_thread:
            if not self._unanswered or self._unanswered[0].seq != result.seq:
                raise ProtocolViolation("an answer out of order", code="answerOutOfOrder")
            sent = self._unanswered.popleft()
        sent.result = result
        self._judge(sent, result)
        if sent.answered is not None:
            sent.answered.set()
        self.changed()

    def changed(self) -> None:
        """Note that there may be room: an answer came, or the channel's backlog became short."""
        with self._changed_in_thread:
            if self._held and not self._ending.is_decided and self._has_room(1):
                self._send_held()
            self._changed_in_thread.notify_all()
        self._changed.set()
        self._changed = trio.Event()

    def _judge(self, sent: _Sent, result: Result) -> None:
        """End this runner when the answer says so."""
        if result.outcome == "claimLost":
            # A pause let only the effect under way go on; an update that crossed it is merely lost.
            if not (sent.may_be_refused and self._ending.is_leaving):
                self._ending.end(EXIT_DONE)
        elif result.outcome == "rejected" and not sent.may_be_refused:
            detail = (
                f"{result.detail.code}: {result.detail.message}" if result.detail else "rejected"
            )
            self._ending.end(EXIT_LOST, f"proposal {sent.seq} was refused: {detail}")
        elif sent.leaves:
            # Before the end of the stream that follows can look like a loss.
            self._ending.end(EXIT_DONE)

    def _has_room(self, count: int) -> bool:
        return len(self._unanswered) + count <= self._ahead_max and self._channel.has_room

    def _is_answered(self) -> bool:
        # The lock: a thread that began to send before the end was decided has been counted.
        with self._changed_in_thread:
            return not self._unanswered

    def _is_idle(self) -> bool:
        return not self._unanswered and not self._held

    async def _until(self, is_true: Callable[[], bool]) -> None:
        """Wait in trio's thread until something about the proposals is true."""
        while not is_true():
            await self._changed.wait()

    async def _asked(
        self, commands: Sequence[Json], *, may_be_refused: bool = False, leaves: bool = False
    ) -> Result:
        """Send commands and wait for their answer."""
        answered = trio.Event()
        with self._changed_in_thread:
            if self._held:
                self._send_held()
            sent = self._send(commands)
            sent.may_be_refused, sent.leaves, sent.answered = may_be_refused, leaves, answered
        await answered.wait()
        # An answer that ends this runner also cancels whoever waited for it.
        await trio.lowlevel.checkpoint()
        assert sent.result is not None
        return sent.result

    def _send_held(self) -> None:
        """Send what was held back as one proposal."""
        self._send(self._held)
        self._held, self._held_bytes = [], 0

    def _send(self, commands: Sequence[Json]) -> _Sent:
        """Send one proposal. The lock is held, so that numbers and bytes keep one order."""
        assert len(self._unanswered) < self._ahead_max, self._ahead_max
        self._last_seq += 1
        frame: dict[str, Json] = {
            "schema": SCHEMA,
            "type": "propose",
            "seq": self._last_seq,
            "commands": list(commands),
        }
        sent = _Sent(self._last_seq)
        self._unanswered.append(sent)
        self._channel.send_bytes(frames.encode(frame))
        return sent
