"""The server's end of one runner's private channel: `pi-workflows.runner.v1`.

The channel itself is the runner's authority: the run's claim is proved with every proposal and
never leaves the server, which also keeps the expected revision. Proposals are handed to the writer
as they come, so that it can commit several in one group; results leave in order, each after its
commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol, TypeAlias

import trio

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import Clock
from pi_workflows.base.errors import (
    Outcome,
    ProtocolViolation,
    Refused,
    RevisionConflict,
    Unavailable,
)
from pi_workflows.base.limits import (
    PROPOSALS_AHEAD_MAX,
    RUN_CLAIM_MS,
    RUNNER_LOGS_PER_SECOND_MAX,
    RUNNER_READY_MS,
    RUNNER_SHUTDOWN_MS,
    SOCKET_READ_BYTES,
    UPDATES_BURST_MAX,
    UPDATES_PER_SECOND_MAX,
)
from pi_workflows.base.rate import Rate
from pi_workflows.base.units import MS_PER_SECOND
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.run.claim import MarkReady
from pi_workflows.kernel.order import Answer, Claimant, Order, WorkerIdentity
from pi_workflows.protocol import proposals as wire
from pi_workflows.protocol import runner
from pi_workflows.protocol.content import ContentGet, ContentPut, Ref, ref
from pi_workflows.protocol.frames import Frame, FrameReader
from pi_workflows.server import workers
from pi_workflows.server.boundaries import Boundary, boundary_of
from pi_workflows.server.claims import HeldRun, StopReason
from pi_workflows.server.content import Incoming, Outgoing
from pi_workflows.server.endings import Ending, Faulty, Forfeited, Left, Lost, Unlaunched
from pi_workflows.server.launch import Launched
from pi_workflows.server.log import ServerLog
from pi_workflows.server.writer import Handed, Writer

WireOutcome: TypeAlias = Literal["accepted", "adopted", "rejected", "claimLost"]

_CLAIM_LOST: Final = Answer(
    outcome=Outcome.CLAIM_LOST, error="The run's claim ended.", code="missingAuthority"
)
_TOO_FAST: Final = Answer(
    outcome=Outcome.REJECTED,
    error=f"An attempt publishes at most {UPDATES_PER_SECOND_MAX} updates a second.",
    code="updateRate",
)


class Shells(Protocol):
    """Where a runner's shells are written down; a `Child` is one."""

    def add_shell(self, pid: int, start_time: str, group: int) -> None:
        """Write a shell's process down, synced. Raises ProtocolViolation or OSError."""
        ...

    def drop_shell(self, pid: int) -> None:
        """Forget a shell that has ended."""
        ...


class Blobs(Protocol):
    """Reads one stored value."""

    def __call__(self, digest: bytes, /) -> bytes:
        """Return its bytes."""
        ...


@dataclass(slots=True, eq=False)
class _Asked:
    """A proposal whose result has not left.

    Attributes:
        seq: Its number.
        may_be_refused: Whether a refusal is an answer for the author, not a fault.
        reserves: The policy of the effect that it reserves.
        handed: What the writer has of it; None when it is not the domain's to decide.
        answer: The answer, when it is not the domain's to decide.
        renews_until_ms: What its acceptance renews the claim to.
    """

    seq: int
    may_be_refused: bool = False
    reserves: Literal["idempotent", "manual"] | None = None
    handed: Handed | None = None
    answer: Answer = _CLAIM_LOST
    renews_until_ms: int = 0


class Channel:
    """One runner's channel, from its launch to its end.

    Args:
        stream: The connection.
        run: The run and its claim.
        worker_epoch: The runner.
        shells: Where its shells are written down.
        writer: Where its proposals go.
        read_blob: Reads what it may get.
        clock: Dates the claim, and measures the rate of updates.
        log: Takes its log lines.
    """

    def __init__(
        self,
        stream: trio.abc.Stream,
        run: HeldRun,
        worker_epoch: str,
        *,
        shells: Shells,
        writer: Writer,
        read_blob: Blobs,
        clock: Clock,
        log: ServerLog,
    ) -> None:
        self._stream = stream
        self._run = run
        self._worker_epoch = worker_epoch
        self._shells = shells
        self._writer = writer
        self._read_blob = read_blob
        self._clock = clock
        self._log = log
        self._incoming = Incoming()
        self._outgoing = Outgoing(read_blob)
        self._rate = Rate(clock, per_second=UPDATES_PER_SECOND_MAX, burst=UPDATES_BURST_MAX)
        self._log_rate = Rate(
            clock, per_second=RUNNER_LOGS_PER_SECOND_MAX, burst=RUNNER_LOGS_PER_SECOND_MAX
        )
        self._actor = Actor("host", worker_epoch)
        self._reader = FrameReader()
        self._frames: Iterator[Frame] = iter(())
        self._scope = trio.CancelScope()
        self._ending: Ending | None = None
        self._sending = trio.Lock()
        self._asked_in, self._asked_out = trio.open_memory_channel[_Asked](PROPOSALS_AHEAD_MAX)
        self._unanswered = 0
        self._last_seq = 0
        self._expected = run.revision
        self._is_over = False
        self._manual: set[str] = set()

    @property
    def active_digests(self) -> frozenset[str]:
        """Values that the runner is sending, or has sent and not named: collections spare them."""
        return self._incoming.digests

    def end(self, ending: Ending) -> None:
        """End the conversation so, unless something has ended it already."""
        if self._ending is None:
            self._ending = ending
            self._scope.cancel()

    async def serve(self, launched: Launched) -> Ending:
        """Launch the runner and decide what it proposes.

        Args:
            launched: Its first frame and the values that it names.

        Returns:
            How the conversation ended: by the runner, by `end`, or by a fault.
        """
        self._outgoing.name(launched.named)
        with self._scope:
            await self._send_bytes(launched.frame)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._reply)
                nursery.start_soon(self._listen, launched, nursery)
        assert self._ending is not None, "a conversation that nothing ended"
        return self._ending

    async def stop(self, reason: StopReason | Literal["shutdown"], grace_ms: int) -> None:
        """Tell the runner to leave; a runner that does not read is not waited for."""
        with trio.move_on_after(min(grace_ms, RUNNER_SHUTDOWN_MS) / MS_PER_SECOND):
            await self._send(runner.Stop(reason=reason, grace_ms=grace_ms))

    # --- in --------------------------------------------------------------------------------------

    async def _listen(self, launched: Launched, nursery: trio.Nursery) -> None:
        """Take what the runner sends, until it closes the stream or breaks the protocol."""
        try:
            if not await self._ready(launched, nursery):
                return
            while (frame := await self._next()) is not None:
                await self._take(runner.decode_from_runner(frame), frame)
        except ProtocolViolation as violation:
            self.end(Lost(f"the runner broke the protocol: {violation.reason_code}"))
        except OSError as error:
            self.end(Lost(f"the registry could not be written: {error.strerror}", is_counted=False))
        else:
            # What was proposed before the end is answered first.
            self._asked_in.close()

    async def _next(self) -> Frame | None:
        """Return the next frame; None at the end of the stream, also of one that cut a frame."""
        while True:
            frame = next(self._frames, None)
            if frame is not None:
                return frame
            data = await self._receive()
            if not data:
                return None
            self._frames = self._reader.feed(data)

    async def _receive(self) -> bytes:
        """Return the next bytes; none when the runner is gone."""
        try:
            return bytes(await self._stream.receive_some(SOCKET_READ_BYTES))
        except trio.BrokenResourceError:
            return b""

    async def _ready(self, launched: Launched, nursery: trio.Nursery) -> bool:
        """Wait for the runner's word that it verified everything, and commit it."""
        frame = None
        with trio.move_on_after(RUNNER_READY_MS / MS_PER_SECOND) as patience:
            frame = await self._next()
        if patience.cancelled_caught:
            self.end(Lost(f"the runner was not ready within {RUNNER_READY_MS // 1_000} s"))
            return False
        if frame is None:
            self._asked_in.close()
            return False
        message = runner.decode_from_runner(frame)
        match message:
            case runner.Failed():
                self.end(Unlaunched(Failure(message.code, message.message)))
                return False
            case runner.Ready() if message == launched.ready:
                return await self._mark_ready(nursery)
            case _:
                raise ProtocolViolation("a runner that did not say ready", code="notReady")

    async def _mark_ready(self, nursery: trio.Nursery) -> bool:
        """Commit that the run goes on; what it raises the run to is the first expected revision."""
        order = self._order("run.ready", 0, Boundary((MarkReady(self._run.run_id),)))
        order = replace(order, identity=None, command_id=f"{self._worker_epoch}:ready")
        try:
            answer = await self._writer.submit(order)
        except Unavailable as error:
            self.end(Lost(f"the run could not begin: {error.reason_code}", is_counted=False))
            return False
        if answer.outcome is not Outcome.ACCEPTED or answer.revision is None:
            self.end(Left() if self._run.is_released else Forfeited())
            return False
        self._run.renewed(order.renew_until_ms)
        self._run.revision = self._expected = answer.revision
        nursery.start_soon(self._note_running)
        return True

    async def _note_running(self) -> None:
        """Keep in the runner's row that it works; a store that cannot take this loses nothing."""
        try:
            await self._writer.submit(workers.running(self._worker_epoch, self._clock.now_ms()))
        except Unavailable:
            return

    async def _take(self, message: runner.FromRunner, frame: Frame) -> None:
        """Do what one message asks for."""
        match message:
            case wire.Propose():
                await self._propose(message, frame)
            case ContentPut():
                self._incoming.put(message)
            case ContentGet():
                for part in self._outgoing.parts(message.sha256):
                    await self._send(part)
            case runner.Child():
                await self._note_shell(message)
            case runner.Log():
                self._note_log(message)
            case runner.Ready() | runner.Failed():
                raise ProtocolViolation("a second word about the launch", code="readyRepeated")

    def _note_log(self, line: runner.Log) -> None:
        """Keep a line; what comes too fast is left out."""
        if self._log_rate.take():
            run_id = self._run.run_id
            self._log.write("runner.log", run=run_id, level=line.level, text=line.text)

    async def _note_shell(self, child: runner.Child) -> None:
        """Write a shell down before it may execute anything, or forget it."""
        if child.state == "starting":
            self._shells.add_shell(child.pid, child.start_identity, child.process_group)
            await self._send(child.model_copy(update={"state": "registered"}))
        elif child.state == "ended":
            self._shells.drop_shell(child.pid)
        else:
            raise ProtocolViolation("a runner that registers", code="childState")

    async def _propose(self, proposal: wire.Propose, frame: Frame) -> None:
        """Take a proposal; its answer is waited for elsewhere."""
        if proposal.seq > self._last_seq + 1:
            raise ProtocolViolation("a proposal is missing", code="seqGap")
        self._last_seq = max(self._last_seq, proposal.seq)
        only = proposal.commands[0]
        is_lone = len(proposal.commands) == 1
        asked = _Asked(
            proposal.seq,
            may_be_refused=is_lone and isinstance(only, wire.Update | wire.ReserveEffect),
            reserves=only.recovery if isinstance(only, wire.ReserveEffect) else None,
        )
        self._decide(asked, proposal, frame)
        self._unanswered += 1
        # A runner that has too many unanswered is not read from meanwhile.
        try:
            self._asked_in.send_nowait(asked)
        except trio.WouldBlock:
            await self._asked_in.send(asked)

    def _decide(self, asked: _Asked, proposal: wire.Propose, frame: Frame) -> None:
        """Hand a proposal to the writer, or answer what is not the domain's to decide."""
        try:
            boundary = boundary_of(
                self._run.run_id,
                self._worker_epoch,
                proposal,
                self._incoming,
                leaves=self._run.is_leaving,
            )
        except Refused as refusal:
            asked.answer = Answer(Outcome.REJECTED, error=refusal.message, code=refusal.reason_code)
            return
        answer = self._answered_here(proposal.commands[0])
        if answer is not None:
            asked.answer = answer
            return
        order = self._order("run.propose", proposal.seq, boundary, frame)
        asked.renews_until_ms = order.renew_until_ms
        try:
            asked.handed = self._writer.hand_over(order)
        except Unavailable as error:
            self._unstored(error)

    def _unstored(self, error: Unavailable) -> None:
        """End a runner whose proposal the store could not take."""
        self._log.limited("runner.unanswered", run=self._run.run_id, code=error.reason_code)
        self.end(Lost("the server could not store what it proposed", is_counted=False))

    def _answered_here(self, only: wire.Command) -> Answer | None:
        """Return the answer of a proposal that is not the domain's to decide, else None."""
        if self._is_over:
            return _CLAIM_LOST
        if isinstance(only, wire.Update) and not self._rate.take():
            return _TOO_FAST
        return None

    def _order(self, name: str, seq: int, boundary: Boundary, frame: Frame | None = None) -> Order:
        """Return a proposal as the writer takes it, and move the expected revision ahead."""
        expires_at_ms = self._clock.now_ms() + RUN_CLAIM_MS
        expected: int | None = self._expected
        if boundary.settles in self._manual:
            # A pause and a resume may have come in between; the claim alone decides.
            expected = None
        self._expected += boundary.raises
        claimant = None
        if boundary.begins is not None:
            token = self._run.effect_token(boundary.begins)
            claimant = Claimant(self._run.permit.owner_id, token, expires_at_ms)
        identity = None
        if frame is not None:
            identity = WorkerIdentity(self._worker_epoch, str(seq), frame.digest)
        return Order(
            name=name,
            commands=boundary.commands,
            actor=self._actor,
            command_id=f"{self._worker_epoch}:{seq}",
            expected_revision=expected,
            identity=identity,
            permit=self._run.permit,
            renew_until_ms=expires_at_ms,
            claimant=claimant,
            run_id=self._run.run_id,
            size_bytes=boundary.size_bytes,
        )

    # --- out -------------------------------------------------------------------------------------

    async def _reply(self) -> None:
        """Send the results in order; end with the first that the runner may not survive."""
        async for asked in self._asked_out:
            answer = asked.answer
            if asked.handed is not None:
                try:
                    answer = await asked.handed.answer()
                except Unavailable as error:
                    self._unstored(error)
                    return
            self._unanswered -= 1
            await self._answer(asked, answer)
        self.end(self._left())

    def _left(self) -> Ending:
        """Say how a runner left that closed its channel."""
        if self._run.is_released:
            return Left()
        return Forfeited() if self._is_over else Lost("the runner ended without a word")

    async def _answer(self, asked: _Asked, answer: Answer) -> None:
        """Send one result."""
        outcome = _outcome(answer)
        values: wire.EffectReservation | wire.SettingsNow | None = None
        if outcome in ("accepted", "adopted"):
            # A repeated proposal is answered with the revision that it led to then.
            self._run.revision = max(self._run.revision, answer.revision or 0)
            self._run.renewed(asked.renews_until_ms)
            values = self._values(asked, answer.values)
        elif not asked.may_be_refused:
            self._is_over = self._is_over or not self._run.is_leaving
        if not self._unanswered:
            self._expected = self._run.revision
        detail = None
        if answer.error is not None:
            detail = wire.Failure.of(answer.code or "refused", answer.error)
        result = runner.Result(
            seq=asked.seq,
            outcome=outcome,
            run_revision=self._run.revision,
            detail=detail,
            values=values,
        )
        await self._send(result)
        if outcome == "rejected" and not asked.may_be_refused:
            reason = detail or wire.Failure(code="refused", message="The proposal was refused.")
            self.end(Faulty(Failure(reason.code, reason.message)))

    def _values(
        self, asked: _Asked, values: Json
    ) -> wire.EffectReservation | wire.SettingsNow | None:
        """Return what the runner learns beside the outcome."""
        if not isinstance(values, dict):
            return None
        if "scopeId" not in values:
            return self._reservation(asked, values)
        named = self._named(str(values["hash"]))
        return wire.SettingsNow.parse({**values, "value": named.document()})

    def _named(self, digest: str) -> Ref:
        """Return how the runner is told a value of its run, which it may ask for from now on."""
        named = ref(Blob.of(self._read_blob(bytes.fromhex(digest)), "application/json"))
        self._outgoing.name((named,))
        return named

    def _reservation(self, asked: _Asked, values: dict[str, Json]) -> wire.EffectReservation:
        """Return what the runner learns about the effect that it reserved."""
        effect_id = values["effectId"]
        if asked.reserves == "manual" and isinstance(effect_id, str):
            self._manual.add(effect_id)
        digest = values.get("result")
        if isinstance(digest, str):
            values = {**values, "result": self._named(digest).document()}
        return wire.EffectReservation.parse(values)

    async def _send(self, message: runner.FromServer) -> None:
        """Send a message."""
        await self._send_bytes(runner.encode(message))

    async def _send_bytes(self, data: bytes) -> None:
        """Send a frame. A runner that is gone is noticed by whoever reads."""
        async with self._sending:
            try:
                await self._stream.send_all(data)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return


def _outcome(answer: Answer) -> WireOutcome:
    """Return an outcome as runners know it: who lost the run's revision has lost the run."""
    match answer.outcome:
        case Outcome.ACCEPTED:
            return "accepted"
        case Outcome.ADOPTED:
            return "adopted"
        case Outcome.CLAIM_LOST:
            return "claimLost"
        case Outcome.CONFLICT if answer.code == RevisionConflict.code:
            return "claimLost"
        case _:
            return "rejected"
