"""What every event and every command has in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome, Refused
from pi_workflows.domain.session.journal import Flush

ActorType: TypeAlias = Literal[
    "session", "host", "controller", "channel", "human", "policy", "control", "system"
]
OwnerType: TypeAlias = Literal["session", "host", "controller", "channel", "system"]
ResourceType: TypeAlias = Literal[
    "run",
    "session",
    "decision",
    "controller",
    "effect",
    "channel",
    "settings",
    "follow_up",
    "message",
]

Integer: TypeAlias = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
"""A number that a column holds: SQLite's integers have 64 bits, those of JSON any number."""


class Fact(BaseModel):
    """A frozen piece of an event's payload.

    Its members are column values: snake_case, digests as hex.

    A member whose name ends in `_hash` names a blob, which then lives as long as the event.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class CommandRef(Fact):
    """Which command an event belongs to.

    The events of one command stand side by side in the log.
    """

    id: str
    name: str


class ResourceRef(Fact):
    """The type and key of a resource, in the event that creates it."""

    type: ResourceType
    key: str


class LeaseClause(Fact):
    """A change of ownership that an event carries.

    Owner identity and token are never part of an event.
    """

    op: Literal["claimed", "released"]
    generation: Integer
    owner_type: OwnerType


class ViewRef(Fact):
    """The presentation revision of a run that the event's command produced."""

    run_id: str
    revision: Integer


class Event(Fact):
    """A stored fact, past tense.

    The header comes from the kernel, everything else from the decider.
    """

    type: ClassVar[str]

    v: Literal[1] = 1
    command: CommandRef | None = None
    resource: ResourceRef | None = None
    lease: LeaseClause | None = None
    view: ViewRef | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """An event as it was read back from the log, which is all that a projector ever sees."""

    resource_id: str
    revision: int
    actor_type: str
    actor_id: str | None
    lease_generation: int | None
    at_ms: int
    fact: Event


@dataclass(frozen=True, slots=True)
class Actor:
    """Who asks, by class.

    The private identity is stored in the event's own column and nowhere else.
    """

    type: ActorType
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Context:
    """What enters with a command: the one `now` it is judged by, and who asks.

    Attributes:
        at_ms: Wall time at which the command is decided.
        actor: Who asks.
        command_id: Identity of the command, for events and derived names.
        host_id: The server's own identity as an owner of claims.
    """

    at_ms: int
    actor: Actor
    command_id: str
    host_id: str


@dataclass(frozen=True, slots=True)
class Command:
    """A request that may be refused. `run_id` names the run whose view it changes."""

    run_id: str


@dataclass(frozen=True, slots=True)
class Draft:
    """An event on its way into the log.

    Attributes:
        resource_type: Type of the resource that the event belongs to.
        key: The resource's aggregate key.
        event: The facts; the kernel adds command, view and, for a new resource, its reference.
        run_id: The run whose view the event changes, or None.
    """

    resource_type: ResourceType
    key: str
    event: Event
    run_id: str | None


@dataclass(frozen=True, slots=True)
class Decided:
    """What a decider returns when it does not refuse.

    Attributes:
        drafts: Events in order; the first belongs to the resource that the command names. Empty
            when there was
            nothing to change.
        blobs: Values that the drafts name.
        flush: Rows of the session journals, which have no event; a command has drafts or a flush.
        receipt: What the caller is told.
        values: What a runner is told beside the receipt.
        outcome: `accepted`, or `adopted` when the same thing was already done.
        follow_up: A command to run right after this one, in the same group.
        refusal: Why it is refused although the drafts are kept: that it was asked is a fact.
    """

    drafts: tuple[Draft, ...] = ()
    blobs: tuple[Blob, ...] = ()
    flush: Flush | None = None
    receipt: Mapping[str, Json] = field(default_factory=dict[str, Json])
    values: Mapping[str, Json] | None = None
    outcome: Outcome = Outcome.ACCEPTED
    follow_up: Command | None = None
    refusal: Refused | None = None
