"""Refusals: from the error on the server to the error on the client."""

from __future__ import annotations

from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    AuthorityDenied,
    IdempotencyConflict,
    LimitExceeded,
    NotFound,
    Outcome,
    OwnershipLost,
    PayloadInvalid,
    Problem,
    ProblemsFound,
    Refused,
    RevisionConflict,
    TransitionDenied,
    Unavailable,
)
from pi_workflows.protocol import envelope
from pi_workflows.protocol.refusal import Refusal, refuse
from pi_workflows.protocol.reply import Reply

_ERRORS: Final[dict[str, Refused | Unavailable]] = {
    "revision": RevisionConflict(),
    "reused": IdempotencyConflict(),
    "missing": NotFound("There is no run build-1.", code="runMissing", field="runId"),
    "claim": OwnershipLost(code="expired"),
    "transition": TransitionDenied("The run has ended.", code="runTerminal"),
    "authority": AuthorityDenied(code="notCoordinator"),
    "limit": LimitExceeded(code="valueTooLarge", field="input", hint="Name a file instead"),
    "payload": PayloadInvalid("limit: must be greater than 0", field="limit"),
    "problems": ProblemsFound(
        [
            Problem("unknownNode", "edges[0]", "no node 'fix'"),
            Problem("unreachable", "nodes.end", "x"),
        ]
    ),
    "stopping": Unavailable("The server is stopping.", code="stopping"),
}


def _reply(error: Refused | Unavailable) -> Reply:
    """Return what a client gets when the server refuses with this error."""
    response = refuse("request-1", error, revision=4)
    return Reply(response.outcome, response.revision, response.receipt, response.error)


@pytest.mark.parametrize("name", list(_ERRORS))
def test_a_refusal_has_these_bytes(name: str, snapshot: SnapshotAssertion) -> None:
    """The outcome, the one line and the receipt of each error are a contract."""
    assert envelope.encode(refuse("request-1", _ERRORS[name])).decode() == snapshot


@pytest.mark.parametrize("name", list(_ERRORS))
def test_an_error_crosses_the_wire(name: str) -> None:
    """The client raises what the server refused with: code, field, hint and message."""
    sent = _ERRORS[name]
    with pytest.raises((Refused, Unavailable)) as raised:
        _reply(sent).done()
    got = raised.value
    assert (got.reason_code, got.field, got.hint) == (sent.reason_code, sent.field, sent.hint)
    assert got.message == sent.message
    assert isinstance(got, Unavailable) == isinstance(sent, Unavailable)
    if isinstance(sent, Refused):
        assert isinstance(got, Refused)
        assert got.outcome is sent.outcome
        assert _reply(sent).revision == 4
    if isinstance(sent, ProblemsFound):
        assert isinstance(got, ProblemsFound)
        assert got.problems == sent.problems


@pytest.mark.parametrize("outcome", [Outcome.ACCEPTED, Outcome.ADOPTED])
def test_what_was_done_is_no_refusal(outcome: Outcome) -> None:
    """Accepted and adopted both mean done, and `done` returns the reply."""
    reply = Reply(outcome, receipt={"runId": "build-1"})
    assert reply.refusal is None
    assert reply.done() is reply


@pytest.mark.parametrize("receipt", [None, [], {"items": []}, {"code": 1}])
def test_a_refusal_may_have_a_document_of_its_own(receipt: Json) -> None:
    """A conflict may answer with the current page; its code is then the outcome's."""
    reply = Reply(Outcome.CONFLICT, receipt=receipt)
    assert reply.refusal == Refusal(code="staleRevision")
    with pytest.raises(RevisionConflict):
        reply.done()


def test_any_message_becomes_one_line() -> None:
    """An error with a long text of several lines, or with none, can still be answered."""
    for message in ("first\nsecond\u2028" + "x" * 5_000, "", " "):
        response = refuse("request-1", Refused(message, field="", hint=""))
        assert envelope.encode(response)
        assert response.error
