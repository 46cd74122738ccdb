"""Who may do what: the authority matrix of the decisions, one row an operation.

The server decides the kind of a connection; nothing that a peer sends can choose it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import AuthorityDenied
from pi_workflows.domain.fact import Actor, ActorType
from pi_workflows.protocol.operations import OPERATIONS, Operation
from pi_workflows.server.coordinators import Coordinators, SessionClaim


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
    """Who asks.

    Attributes:
        kind: What the server knows about the connection, or as what this request is made.
        session_id: The session in whose name it is made; None unless the kind is session.
        key_id: The key with which a person proved the passphrase on the connection, if one did.
    """

    kind: ConnectionKind
    session_id: str | None = None
    key_id: str | None = None


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
# Whoever is not proved to be a person may ask, so that it is remembered that it was refused.
_PROTECTED: Final = _READ
_OWN_SESSION: Final[Mapping[ConnectionKind, ActorType]] = {_SESSION: "session"}

MATRIX: Final[Mapping[Operation, Mapping[ConnectionKind, ActorType]]] = {
    Operation.RUN_START: _RUN_COMMAND,
    Operation.RUN_PAUSE: _RUN_COMMAND,
    Operation.RUN_RESUME: _RUN_COMMAND,
    Operation.RUN_CANCEL: _RUN_COMMAND,
    Operation.RUN_RESTART: _RUN_COMMAND,
    # By pointer rule; the workflow says what each class may do.
    Operation.RUN_CHANGE_SETTINGS: _RUN_COMMAND,
    Operation.FOLLOW_UP_QUEUE: _RUN_COMMAND,
    Operation.FOLLOW_UP_REMOVE: _RUN_COMMAND,
    Operation.RUN_STATUS: _READ,
    Operation.RUN_LIST: _READ,
    Operation.CHECKPOINT_ANSWER: _RUN_COMMAND,
    Operation.DECISION_ANSWER: _PROTECTED,
    Operation.OPERATOR_PROVE: _READ,
    Operation.VIEW_RUNS_WATCH: _READ,
    Operation.VIEW_RUNS_PAGE: _READ,
    Operation.VIEW_RUN_GET: _READ,
    Operation.VIEW_RUN_WATCH: _READ,
    Operation.VIEW_RUN_UNWATCH: _READ,
    Operation.VIEW_SESSION_WATCH: _READ,
    Operation.VIEW_SESSION_WINDOW: _READ,
    Operation.VIEW_PAGE: _READ,
    Operation.VIEW_CONTENT: _READ,
    Operation.VIEW_SEARCH: _READ,
    Operation.WORKFLOW_MESSAGE_REPORT_BRANCH: _OWN_SESSION,
    Operation.WORKFLOW_TURN_REPORT: _OWN_SESSION,
    Operation.SESSION_VIEW_CLEAR_TERMINAL: _OWN_SESSION,
    Operation.INTERACTION_SUBMIT: _OWN_SESSION,
    Operation.INTERACTION_ASSISTANT: _OWN_SESSION,
    Operation.INTERACTION_UPDATE: _OWN_SESSION,
    Operation.SESSION_RECORD: _OWN_SESSION,
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


OWN_RUN: Final = frozenset(
    {
        Operation.RUN_START,
        Operation.RUN_PAUSE,
        Operation.RUN_RESUME,
        Operation.RUN_CANCEL,
        Operation.RUN_RESTART,
        Operation.RUN_CHANGE_SETTINGS,
        Operation.FOLLOW_UP_QUEUE,
        Operation.FOLLOW_UP_REMOVE,
        Operation.CHECKPOINT_ANSWER,
        Operation.DECISION_ANSWER,
        Operation.INTERACTION_SUBMIT,
        Operation.INTERACTION_ASSISTANT,
        Operation.INTERACTION_UPDATE,
        Operation.SESSION_RECORD,
    }
)
"""What a session may ask for about the runs of its own only."""

# The branch is what every other request in a session's name rests on.
_BEFORE_REPORT: Final = frozenset({Operation.WORKFLOW_MESSAGE_REPORT_BRANCH})


def session_claim(operation: Operation, payload: Json) -> SessionClaim | None:
    """Return the session in whose name a request is made.

    Args:
        operation: What is asked for.
        payload: Its payload as it came, as authority is checked before anything else.

    Returns:
        The claim; None for a control request. Half a claim is none: the payload's model refuses it.
    """
    if not OPERATIONS[operation].is_session or not isinstance(payload, dict):
        return None
    session_id, epoch = payload.get("targetSessionId"), payload.get("coordinatorEpoch")
    if isinstance(session_id, str) and isinstance(epoch, int) and not isinstance(epoch, bool):
        return SessionClaim(session_id, epoch)
    return None


def speaker_of(
    coordinators: Coordinators,
    connection_id: str,
    connected: Speaker,
    operation: Operation,
    claim: SessionClaim | None,
) -> Speaker:
    """Say as whom a connection makes a request (decision "who speaks").

    Args:
        coordinators: Who coordinates which session.
        connection_id: The connection.
        connected: What the server knows about it otherwise.
        operation: What it asks for.
        claim: The session in whose name it says that it asks.

    Returns:
        The session for a claim that holds. Without one, an operation that a session may claim is a
        request of the connection itself; any other one of a coordinator is its session's.

    Raises:
        AuthorityDenied: `notCoordinator` or `branchReportRequired`.
    """
    if claim is not None:
        needs_report = operation not in _BEFORE_REPORT
        coordinators.require(claim, connection_id, needs_report=needs_report)
        return Speaker(_SESSION, claim.session_id, connected.key_id)
    held = coordinators.held_by(connection_id)
    if held is None or OPERATIONS[operation].is_session or connected.kind is not _CONTROL:
        return connected
    return Speaker(_SESSION, held.session_id)


def actor_for(speaker: Speaker, operation: Operation, client_id: str) -> Actor:
    """Say as whom a request is remembered.

    Args:
        speaker: Who asks.
        operation: What for.
        client_id: The client's own name, kept as the actor's private identity.

    Returns:
        The actor that the events remember.

    Raises:
        AuthorityDenied: A speaker of this kind may not ask for it.
    """
    if speaker.key_id is not None and _is_persons(speaker, operation):
        return Actor("human", f"operator:{speaker.key_id}")
    actor_type = MATRIX[operation].get(speaker.kind)
    if actor_type is None:
        raise AuthorityDenied(f"A {speaker.kind} connection may not ask for {operation}.")
    return Actor(actor_type, client_id)


def _is_persons(speaker: Speaker, operation: Operation) -> bool:
    """Whether a request on a connection that proved the passphrase is the person's own.

    A session remains one for everything but what only a person may do.
    """
    if MATRIX[operation].get(_OPERATOR) != "human":
        return False
    return speaker.kind is _OPERATOR or operation is Operation.DECISION_ANSWER
