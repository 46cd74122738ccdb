"""What a runner proposes, as the commands that the domain decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import LimitExceeded, PayloadInvalid
from pi_workflows.base.limits import UPDATE_DATA_BYTES_MAX
from pi_workflows.domain.attempt import boundary, notice, progress, question
from pi_workflows.domain.effect import application
from pi_workflows.domain.fact import Command
from pi_workflows.domain.failure import Failure
from pi_workflows.domain.run import ending
from pi_workflows.domain.settings.change import OpenSettings
from pi_workflows.domain.settings.state import Binding
from pi_workflows.domain.value import as_text
from pi_workflows.protocol import proposals as wire
from pi_workflows.protocol.content import Ref
from pi_workflows.server.content import Incoming

# Commands that append exactly one event to the run, whatever else they touch.
_ON_THE_RUN: Final = (
    wire.OpenSettings,
    wire.StartAttempt,
    wire.FinishAttempt,
    wire.Notify,
    wire.Update,
)
_LEAVING: Final = (wire.Requeue, wire.WaitForInput, wire.FinishRun)


@dataclass(frozen=True, slots=True)
class Boundary:
    """A proposal, ready to be decided.

    Attributes:
        commands: In order.
        size_bytes: Bytes of the values that they name.
        raises: By how much they raise the run's revision, if the runner stays after them.
        settles: The effect that it settles, when that is all that it does.
        begins: The effect that it begins to try.
    """

    commands: tuple[Command, ...]
    size_bytes: int = 0
    raises: int = 0
    settles: str | None = None
    begins: str | None = None


def boundary_of(
    run_id: str, worker_epoch: str, proposal: wire.Propose, content: Incoming, *, leaves: bool
) -> Boundary:
    """Translate a proposal.

    Args:
        run_id: The runner's run.
        worker_epoch: The runner.
        proposal: What it sent.
        content: The values that it put; those that the proposal names are given up.
        leaves: Whether the run's claim ends with the settlement of its effect.

    Returns:
        The commands and what the channel has to know about them.

    Raises:
        PayloadInvalid: `proposalMixed`, a command stands where it must not stand.
        LimitExceeded: A value is over its limit.
        ProtocolViolation: It names a value that it did not put.
    """
    _require_order(proposal.commands)
    reader = _Reader(run_id, worker_epoch, content, leaves=leaves)
    commands = tuple(reader.command(command) for command in proposal.commands)
    content.name(reader.blobs)
    only = proposal.commands[0] if len(proposal.commands) == 1 else None
    begun = [each.effect_id for each in proposal.commands if isinstance(each, wire.BeginEffect)]
    return Boundary(
        commands=commands,
        size_bytes=sum(len(blob.content) for blob in reader.blobs),
        raises=sum(isinstance(command, _ON_THE_RUN) for command in proposal.commands),
        settles=only.effect_id if isinstance(only, wire.SettleEffect) else None,
        begins=begun[0] if begun else None,
    )


def _require_order(commands: tuple[wire.Command, ...]) -> None:
    """Refuse commands that must stand alone, or last, where they do not."""
    alone = (wire.Update, wire.ReserveEffect, wire.SettleEffect)
    if len(commands) > 1 and any(isinstance(command, alone) for command in commands):
        raise PayloadInvalid(
            "Such a command is the only one of its proposal.", code="proposalMixed"
        )
    if any(isinstance(command, _LEAVING) for command in commands[:-1]):
        raise PayloadInvalid("A command that ends the claim comes last.", code="proposalMixed")


class _Reader:
    """Reads the commands of one proposal.

    Attributes:
        blobs: The values that they name, in order.
    """

    def __init__(self, run_id: str, worker_epoch: str, content: Incoming, *, leaves: bool) -> None:
        self._run_id = run_id
        self._worker_epoch = worker_epoch
        self._content = content
        self._leaves = leaves
        self.blobs: list[Blob] = []

    def command(self, command: wire.Command) -> Command:
        """Return one command for the domain."""
        match command:
            case wire.OpenSettings():
                return OpenSettings(
                    self._run_id,
                    mount_path=command.mount_path,
                    invocation=command.invocation,
                    initial=self._value(command.initial),
                )
            case wire.StartAttempt():
                return boundary.StartAttempt(
                    self._run_id,
                    attempt_id=command.attempt_id,
                    node_path=command.node_path,
                    visit=command.visit,
                    attempt_number=command.attempt_number,
                    node_type=command.node_type,
                    timeout_ms=command.timeout_ms,
                    settings=_binding(command.settings),
                    prompt=self._prompt(command.prompt),
                )
            case wire.FinishAttempt():
                return self._finish_attempt(command)
            case wire.Notify():
                return notice.Notify(
                    self._run_id,
                    attempt_id=command.attempt_id,
                    text=self._value(command.text),
                    kind=command.kind,
                    elapsed_ns=command.elapsed_ns,
                )
            case wire.Requeue():
                return boundary.Requeue(self._run_id, delay_ms=command.delay_ms)
            case wire.WaitForInput():
                return question.WaitForInput(
                    self._run_id,
                    attempt_id=command.attempt_id,
                    kind=command.kind,
                    contract=self._value(command.contract),
                )
            case wire.Update():
                return self._update(command)
            case wire.FinishRun():
                return ending.FinishRun(
                    self._run_id,
                    outcome=command.outcome,
                    output=self._optional(command.output),
                    failure=_failure(command.error),
                )
            case wire.ReserveEffect() | wire.BeginEffect() | wire.SettleEffect():
                return self._effect(command)

    def _finish_attempt(self, command: wire.FinishAttempt) -> Command:
        receipt = None if command.receipt is None else self._keep(Blob.json(command.receipt))
        return boundary.FinishAttempt(
            self._run_id,
            attempt_id=command.attempt_id,
            outcome=command.outcome,
            output=self._optional(command.output),
            receipt=receipt,
            failure=_failure(command.error),
            elapsed_ns=command.elapsed_ns,
        )

    def _effect(
        self, command: wire.ReserveEffect | wire.BeginEffect | wire.SettleEffect
    ) -> Command:
        match command:
            case wire.ReserveEffect():
                return application.ReserveEffect(
                    self._run_id,
                    attempt_id=command.attempt_id,
                    effect_type=command.effect_type,
                    recovery=command.recovery,
                    request=self._value(command.request),
                )
            case wire.BeginEffect():
                return application.BeginEffect(
                    self._run_id,
                    effect_id=command.effect_id,
                    attempt_number=command.attempt_number,
                    owner_id=self._worker_epoch,
                )
            case wire.SettleEffect():
                return application.SettleEffect(
                    self._run_id,
                    effect_id=command.effect_id,
                    attempt_number=command.attempt_number,
                    outcome=command.outcome,
                    result=self._optional(command.result),
                    failure=_failure(command.error),
                    leaves=self._leaves,
                )

    def _update(self, command: wire.Update) -> Command:
        data = self._keep(Blob.json(command.data))
        if len(data.content) > UPDATE_DATA_BYTES_MAX:
            raise LimitExceeded(
                f"An update holds at most {UPDATE_DATA_BYTES_MAX:,} bytes.",
                code="updateTooLarge",
                field="data",
            )
        return progress.RecordUpdate(
            self._run_id,
            attempt_id=command.attempt_id,
            update_type=command.type,
            update_key=command.key,
            data=data,
        )

    def _value(self, ref: Ref) -> Blob:
        """Return a value that the proposal holds or names."""
        return self._keep(self._content.value(ref))

    def _prompt(self, ref: Ref | None) -> Blob | None:
        """Return a prompt, which travels as a JSON text and is kept as the text itself."""
        if ref is None:
            return None
        return as_text(self._value(ref), field="prompt")

    def _optional(self, ref: Ref | None) -> Blob | None:
        """Return such a value, if there is one."""
        return None if ref is None else self._value(ref)

    def _keep(self, blob: Blob) -> Blob:
        self.blobs.append(blob)
        return blob


def _binding(claim: wire.SettingsClaim | None) -> Binding | None:
    """Return the settings that a runner names."""
    if claim is None:
        return None
    return Binding(claim.scope_id, claim.change_number, claim.hash)


def _failure(error: wire.Failure | None) -> Failure | None:
    """Return why something failed, as the domain keeps it."""
    return None if error is None else Failure(error.code, error.message)
