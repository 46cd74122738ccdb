"""What a runner proposes: an ordered list of commands, all or none, in one savepoint of the server.

The runner protocol, command table. A command that releases the claim comes last in its proposal.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from pi_workflows.base.limits import (
    EFFECT_TYPE_CHARS_MAX,
    FAILURE_CHARS_MAX,
    PROPOSAL_COMMANDS_MAX,
)
from pi_workflows.definition.snapshot import NodeType, NoticeKind, Recovery, RequestKind
from pi_workflows.protocol.content import Ref
from pi_workflows.protocol.wire import Count, Id, JsonObject, Maybe, Number, Sha256, Text, WireModel

NodeOutcome: TypeAlias = Literal["ok", "failed", "timed_out", "cancelled"]
"""How an attempt ends."""

EffectStatus: TypeAlias = Literal[
    "pending", "applying", "applied", "rejected", "ambiguous", "cancelled"
]
"""Where an effect stands."""

EffectType: TypeAlias = Annotated[str, Field(min_length=1, max_length=EFFECT_TYPE_CHARS_MAX)]
"""The name under which an author declared an effect."""


class Failure(WireModel):
    """Why something failed: a stable code for programs, a message for people."""

    code: Text
    message: Annotated[str, Field(max_length=FAILURE_CHARS_MAX)]

    @classmethod
    def of(cls, code: str, message: str) -> Failure:
        """Build a failure from a message of any length.

        A long one loses its middle, where people look last.
        """
        if len(message) > FAILURE_CHARS_MAX:
            half = FAILURE_CHARS_MAX // 2 - 1
            message = f"{message[:half]}…{message[-half:]}"
        return cls(code=code, message=message)


class SettingsClaim(WireModel):
    """The settings that a runner knows; their number may be one of before."""

    scope_id: Text
    change_number: Count
    hash: Sha256


class StartAttempt(WireModel):
    """A node begins: it is next on the accepted route, or a retry of it is due."""

    command: Literal["startAttempt"] = "startAttempt"
    attempt_id: Id
    node_path: Text
    visit: Number
    attempt_number: Number
    node_type: NodeType
    timeout_ms: Count
    prompt: Maybe[Ref] = None
    settings: Maybe[SettingsClaim] = None


class OpenSettings(WireModel):
    """A workflow is entered: its settings come to be, before its first attempt begins."""

    command: Literal["openSettings"] = "openSettings"
    mount_path: str
    invocation: Number
    initial: Ref


class FinishAttempt(WireModel):
    """The open attempt ended after `elapsed_ns` nanoseconds of active time."""

    command: Literal["finishAttempt"] = "finishAttempt"
    attempt_id: Id
    outcome: NodeOutcome
    output: Maybe[Ref] = None
    receipt: Maybe[JsonObject] = None
    error: Maybe[Failure] = None
    elapsed_ns: Count


class Requeue(WireModel):
    """A retry or the next node is due later: the run leaves its runner until then."""

    command: Literal["requeue"] = "requeue"
    delay_ms: Number


class WaitForInput(WireModel):
    """The open attempt asks for an answer and the run leaves its runner until it is there."""

    command: Literal["waitForInput"] = "waitForInput"
    attempt_id: Id
    kind: RequestKind
    contract: Ref


class Notify(WireModel):
    """The open attempt ends with a text for the run's session; the text is its output."""

    command: Literal["notify"] = "notify"
    attempt_id: Id
    text: Ref
    kind: NoticeKind
    elapsed_ns: Count


class ReserveEffect(WireModel):
    """Gives an effect its identity before anything is done."""

    command: Literal["reserveEffect"] = "reserveEffect"
    attempt_id: Id
    effect_type: EffectType
    recovery: Recovery
    request: Ref


class BeginEffect(WireModel):
    """A numbered try begins; what it does outside may happen only after the answer."""

    command: Literal["beginEffect"] = "beginEffect"
    effect_id: Id
    attempt_number: Number


class SettleEffect(WireModel):
    """A numbered try ended."""

    command: Literal["settleEffect"] = "settleEffect"
    effect_id: Id
    attempt_number: Number
    outcome: Literal["applied", "rejected", "uncertain"]
    result: Maybe[Ref] = None
    error: Maybe[Failure] = None


class Update(WireModel):
    """Progress of the open attempt: the newest data under its type and key."""

    command: Literal["update"] = "update"
    attempt_id: Id
    type: Annotated[str, Field(pattern="^[a-z][a-z0-9.-]{0,63}$")]
    key: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$")]
    data: JsonObject


class FinishRun(WireModel):
    """The run reached its end; no attempt is open."""

    command: Literal["finishRun"] = "finishRun"
    outcome: Literal["completed", "failed", "timed_out"]
    output: Maybe[Ref] = None
    error: Maybe[Failure] = None


Command: TypeAlias = Annotated[
    OpenSettings
    | StartAttempt
    | FinishAttempt
    | Requeue
    | WaitForInput
    | Notify
    | ReserveEffect
    | BeginEffect
    | SettleEffect
    | Update
    | FinishRun,
    Field(discriminator="command"),
]
"""One command of a proposal, told apart by its member `command`."""


class Propose(WireModel):
    """Commands in order, all or none. `seq` counts the proposals of one runner from 1."""

    type: Literal["propose"] = "propose"
    seq: Number
    commands: Annotated[
        tuple[Command, ...],
        Field(strict=False, min_length=1, max_length=PROPOSAL_COMMANDS_MAX),
    ]


class EffectReservation(WireModel):
    """What the runner learns about the effect that it reserved."""

    effect_id: Id
    status: EffectStatus
    attempt_count: Count
    result: Maybe[Ref] = None


class SettingsNow(WireModel):
    """What the runner learns of settings that are not the ones that it named.

    Of a `startAttempt`: the attempt is bound to these. Of the `finishAttempt` of a settings route:
    its choice does not count, and it is attempted again.
    """

    scope_id: Text
    change_number: Count
    hash: Sha256
    value: Ref
