"""The authority matrix, cell by cell, for every operation that exists."""

from __future__ import annotations

import pytest

from pi_workflows.base.errors import AuthorityDenied
from pi_workflows.protocol.operations import OPERATIONS, Operation
from pi_workflows.protocol.runs import CheckpointAnswer, RunRestart
from pi_workflows.protocol.wire import NoPayload, SessionPayload
from pi_workflows.server.authority import ConnectionKind, Speaker, actor_for, check_session

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
    "checkpoint.answer": _RUN,
    "run.status": _READ,
    "run.list": _READ,
    "view.runs.watch": _READ,
    "view.runs.page": _READ,
    "view.run.get": _READ,
    "view.run.watch": _READ,
    "view.run.unwatch": _READ,
    "view.page": _READ,
    "view.content": _READ,
    "view.search": _READ,
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
    "payload",
    [
        RunRestart(target_session_id="session-1", coordinator_epoch=1),
        CheckpointAnswer(
            request_id="request-1",
            submission_id="submission-1",
            target_session_id="session-1",
            coordinator_epoch=1,
        ),
    ],
)
def test_a_session_is_claimed_by_its_coordinator_only(payload: SessionPayload) -> None:
    """A connection that names a session whose epoch it does not hold is refused; its own is not."""
    for speaker in (
        Speaker(ConnectionKind.CONTROL),
        Speaker(ConnectionKind.SESSION, "session-2"),
    ):
        with pytest.raises(AuthorityDenied) as caught:
            check_session(speaker, payload)
        assert caught.value.reason_code == "notCoordinator"
    check_session(Speaker(ConnectionKind.SESSION, "session-1"), payload)


def test_a_control_request_names_no_session() -> None:
    """Without a session in its payload a request is a control request, whatever the operation."""
    for payload in (NoPayload(), RunRestart()):
        check_session(Speaker(ConnectionKind.CONTROL), payload)
