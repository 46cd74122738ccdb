"""The authority matrix, cell by cell, for every operation that exists."""

from __future__ import annotations

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import AuthorityDenied
from pi_workflows.protocol.operations import OPERATIONS, Operation
from pi_workflows.server.authority import (
    ConnectionKind,
    Speaker,
    actor_for,
    session_claim,
    speaker_of,
)
from pi_workflows.server.coordinators import BranchReport, Coordinators, SessionClaim

# Columns: control, session, operator, channel, runner. A cell is the actor that is stored; "-" is
# refused.
_RUN = "control session human - -"
_READ = "control session human - -"
_EFFECT = "control - human - -"
_SERVER = "control - control - -"
_MATRIX = {
    "run.start": _RUN,
    "run.pause": _RUN,
    "run.resume": _RUN,
    "run.cancel": _RUN,
    "run.restart": _RUN,
    "run.changeSettings": _RUN,
    "followUp.queue": _RUN,
    "followUp.remove": _RUN,
    "checkpoint.answer": _RUN,
    # The domain refuses whoever is not proved to be a person, and remembers that.
    "decision.answer": "control session human - -",
    "operator.prove": _READ,
    "run.status": _READ,
    "run.list": _READ,
    "view.runs.watch": _READ,
    "view.runs.page": _READ,
    "view.run.get": _READ,
    "view.run.watch": _READ,
    "view.run.unwatch": _READ,
    "view.session.watch": _READ,
    "view.session.window": _READ,
    "view.page": _READ,
    "view.content": _READ,
    "view.search": _READ,
    "workflowMessage.reportBranch": "- session - - -",
    "workflowTurn.report": "- session - - -",
    "sessionView.clearTerminal": "- session - - -",
    "interaction.submit": "- session - - -",
    "interaction.assistant": "- session - - -",
    "interaction.update": "- session - - -",
    "session.record": "- session - - -",
    "workflow.list": _READ,
    "workflow.resolve": _READ,
    "workflow.check": _READ,
    "effect.list": _READ,
    "effect.resolve": _EFFECT,
    "state.status": _SERVER,
    "state.verify": _SERVER,
    "state.backup": _SERVER,
    "server.status": _SERVER,
    "server.stop": _SERVER,
}
_CELLS = [
    (operation, kind, cell)
    for operation, row in _MATRIX.items()
    for kind, cell in zip(ConnectionKind, row.split(), strict=True)
]


def test_every_operation_has_a_row() -> None:
    """No operation is without an answer to who may ask for it."""
    assert {Operation(name) for name in _MATRIX} == set(OPERATIONS)


@pytest.mark.parametrize(("operation", "kind", "cell"), _CELLS)
def test_the_matrix_holds(operation: str, kind: ConnectionKind, cell: str) -> None:
    """Each kind of connection may do what its cell says, as the actor that it names."""
    speaker = Speaker(kind)
    if cell == "-":
        with pytest.raises(AuthorityDenied) as caught:
            actor_for(speaker, Operation(operation), "client-1")
        assert caught.value.reason_code == "authorityDenied"
    else:
        actor = actor_for(speaker, Operation(operation), "client-1")
        assert (actor.type, actor.id) == (cell, "client-1")


@pytest.mark.parametrize(
    ("speaker", "operation", "actor"),
    [
        (Speaker(ConnectionKind.OPERATOR, key_id="k"), "decision.answer", "human operator:k"),
        (Speaker(ConnectionKind.OPERATOR, key_id="k"), "run.start", "human operator:k"),
        (Speaker(ConnectionKind.OPERATOR, key_id="k"), "server.stop", "control client-1"),
        (Speaker(ConnectionKind.SESSION, "s", "k"), "decision.answer", "human operator:k"),
        (Speaker(ConnectionKind.SESSION, "s", "k"), "checkpoint.answer", "session client-1"),
        (Speaker(ConnectionKind.SESSION, "s", "k"), "run.cancel", "session client-1"),
        (Speaker(ConnectionKind.SESSION, "s"), "decision.answer", "session client-1"),
    ],
)
def test_a_person_is_who_proved_the_passphrase(
    speaker: Speaker, operation: str, actor: str
) -> None:
    """The key stands for the person; a session's own requests stay the session's."""
    found = actor_for(speaker, Operation(operation), "client-1")
    assert f"{found.type} {found.id}" == actor


_SESSIONS = [operation for operation, spec in OPERATIONS.items() if spec.is_session]
_OTHERS = [operation for operation, spec in OPERATIONS.items() if not spec.is_session]
_BRANCH = BranchReport(None, None, is_idle=True, has_pending_messages=False)
_CONTROL = Speaker(ConnectionKind.CONTROL)


def _claim(operation: Operation, session_id: str = "session-1", epoch: int = 1) -> SessionClaim:
    """Return the claim of a request in a session's name."""
    payload: Json = {"targetSessionId": session_id, "coordinatorEpoch": epoch}
    wanted = SessionClaim(session_id, epoch)
    assert session_claim(operation, payload) == wanted
    return wanted


def _coordinated(*, is_reported: bool = True) -> Coordinators:
    """Return sessions of which connection a coordinates the first and b the second."""
    coordinators = Coordinators(lambda _: None)
    for session_id, connection in (("session-1", "a"), ("session-2", "b")):
        coordinators.take(session_id, connection, "s")
        if is_reported:
            coordinators.report(session_id, _BRANCH)
    return coordinators


@pytest.mark.parametrize("operation", _SESSIONS)
def test_a_session_is_claimed_by_its_coordinator_only(operation: Operation) -> None:
    """Another connection, another session and another epoch are refused; the session's is not."""
    coordinators = _coordinated()
    for connection, claim in (
        ("nobody", _claim(operation)),
        ("b", _claim(operation)),
        ("a", _claim(operation, "session-2", 2)),
        ("a", _claim(operation, "session-3")),
        ("a", _claim(operation, epoch=2)),
    ):
        with pytest.raises(AuthorityDenied) as caught:
            speaker_of(coordinators, connection, _CONTROL, operation, claim)
        assert caught.value.reason_code == "notCoordinator"
    speaker = speaker_of(coordinators, "a", _CONTROL, operation, _claim(operation))
    assert speaker == Speaker(ConnectionKind.SESSION, "session-1")


@pytest.mark.parametrize("operation", _SESSIONS)
def test_a_session_reports_its_branch_first(operation: Operation) -> None:
    """Before the report the report is all that a session may ask for."""
    coordinators = _coordinated(is_reported=False)
    if operation is Operation.WORKFLOW_MESSAGE_REPORT_BRANCH:
        speaker = speaker_of(coordinators, "a", _CONTROL, operation, _claim(operation))
        assert speaker.session_id == "session-1"
        return
    with pytest.raises(AuthorityDenied) as caught:
        speaker_of(coordinators, "a", _CONTROL, operation, _claim(operation))
    assert caught.value.reason_code == "branchReportRequired"


@pytest.mark.parametrize("operation", _SESSIONS)
@pytest.mark.parametrize(
    "payload",
    [
        None,
        {},
        {"targetSessionId": "session-1"},
        {"coordinatorEpoch": 1},
        {"targetSessionId": "session-1", "coordinatorEpoch": "1"},
        {"targetSessionId": "session-1", "coordinatorEpoch": True},
        {"targetSessionId": 1, "coordinatorEpoch": 1},
    ],
)
def test_without_a_whole_claim_it_is_a_control_request(operation: Operation, payload: Json) -> None:
    """A request that does not name session and epoch is the connection's own, a coordinator's too.

    What stands there of a claim is refused when the payload is read.
    """
    claim = session_claim(operation, payload)
    assert claim is None
    assert speaker_of(_coordinated(), "a", _CONTROL, operation, claim) == _CONTROL


@pytest.mark.parametrize("operation", _OTHERS)
def test_what_a_coordinator_asks_otherwise_is_its_sessions(operation: Operation) -> None:
    """Where no session can be named, a coordinator speaks for its own; an operator stays one."""
    payload: Json = {"targetSessionId": "session-1", "coordinatorEpoch": 1}
    assert session_claim(operation, payload) is None
    coordinators = _coordinated(is_reported=False)
    for connection, connected, speaker in (
        ("a", _CONTROL, Speaker(ConnectionKind.SESSION, "session-1")),
        ("a", Speaker(ConnectionKind.OPERATOR), Speaker(ConnectionKind.OPERATOR)),
        ("nobody", _CONTROL, _CONTROL),
    ):
        assert speaker_of(coordinators, connection, connected, operation, None) == speaker
