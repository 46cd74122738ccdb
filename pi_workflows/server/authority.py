"""Who may do what: the authority matrix of the decisions, one row an operation.

The server decides the kind of a connection; nothing that a peer sends can choose it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pi_workflows.base.errors import AuthorityDenied
from pi_workflows.domain.fact import Actor, ActorType
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.wire import Payload, SessionPayload


class ConnectionKind(StrEnum):
    """What the server knows about the other end of a connection."""

    CONTROL = "control"
    """Any local client of the same user."""

    SESSION = "session"
    """It holds the coordinator epoch of a Pi session."""

    OPERATOR = "operator"
    """A person proved the passphrase on it."""

    CHANNEL = "channel"
    """The private channel of a supervised adapter."""

    RUNNER = "runner"
    """The private channel of a supervised runner."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """The other end of a connection.

    Attributes:
        kind: What the server knows about it.
        session_id: The session whose epoch it holds; None when it holds none.
    """

    kind: ConnectionKind
    session_id: str | None = None


_CONTROL: Final = ConnectionKind.CONTROL
_SESSION: Final = ConnectionKind.SESSION
_OPERATOR: Final = ConnectionKind.OPERATOR

# Each row: who may ask, and as which class of actor the events remember them.
_READ: Final[Mapping[ConnectionKind, ActorType]] = {
    _CONTROL: "control",
    _SESSION: "session",
    _OPERATOR: "human",
}
_RUN_COMMAND: Final = _READ
_EFFECT: Final[Mapping[ConnectionKind, ActorType]] = {_CONTROL: "control", _OPERATOR: "human"}
_SERVER: Final[Mapping[ConnectionKind, ActorType]] = {_CONTROL: "control", _OPERATOR: "control"}

MATRIX: Final[Mapping[Operation, Mapping[ConnectionKind, ActorType]]] = {
    Operation.RUN_START: _RUN_COMMAND,
    Operation.RUN_PAUSE: _RUN_COMMAND,
    Operation.RUN_RESUME: _RUN_COMMAND,
    Operation.RUN_CANCEL: _RUN_COMMAND,
    Operation.RUN_RESTART: _RUN_COMMAND,
    Operation.RUN_STATUS: _READ,
    Operation.RUN_LIST: _READ,
    Operation.CHECKPOINT_ANSWER: _RUN_COMMAND,
    Operation.VIEW_RUNS_WATCH: _READ,
    Operation.VIEW_RUNS_PAGE: _READ,
    Operation.VIEW_RUN_GET: _READ,
    Operation.VIEW_RUN_WATCH: _READ,
    Operation.VIEW_RUN_UNWATCH: _READ,
    Operation.VIEW_PAGE: _READ,
    Operation.VIEW_CONTENT: _READ,
    Operation.VIEW_SEARCH: _READ,
    Operation.WORKFLOW_LIST: _READ,
    Operation.WORKFLOW_RESOLVE: _READ,
    Operation.WORKFLOW_CHECK: _READ,
    Operation.EFFECT_LIST: _READ,
    Operation.EFFECT_RESOLVE: _EFFECT,
    Operation.STATE_STATUS: _SERVER,
    Operation.STATE_VERIFY: _SERVER,
    Operation.STATE_BACKUP: _SERVER,
    Operation.SERVER_STATUS: _SERVER,
    Operation.SERVER_STOP: _SERVER,
}


def actor_for(speaker: Speaker, operation: Operation, client_id: str) -> Actor:
    """Say as whom a connection asks for an operation.

    Args:
        speaker: The other end of the connection.
        operation: What it asks for.
        client_id: The client's own name, kept as the actor's private identity.

    Returns:
        The actor that the events remember.

    Raises:
        AuthorityDenied: A connection of this kind may not ask for it.
    """
    actor_type = MATRIX[operation].get(speaker.kind)
    if actor_type is None:
        raise AuthorityDenied(f"A {speaker.kind} connection may not ask for {operation}.")
    return Actor(actor_type, client_id)


def check_session(speaker: Speaker, payload: Payload) -> None:
    """Refuse a request that names a session whose epoch the connection does not hold.

    Args:
        speaker: The other end of the connection.
        payload: The request's payload.

    Raises:
        AuthorityDenied: `notCoordinator`.
    """
    if not isinstance(payload, SessionPayload) or not payload.claims_session:
        return
    if speaker.session_id is None or payload.target_session_id != speaker.session_id:
        raise AuthorityDenied(
            "This connection does not coordinate that session.",
            code="notCoordinator",
            field="targetSessionId",
        )
