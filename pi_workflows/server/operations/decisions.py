"""What only a person decides, and the proof that a connection is a person's."""

from __future__ import annotations

from dataclasses import replace

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import AuthorityDenied
from pi_workflows.base.limits import OPERATOR_PROOF_MS
from pi_workflows.domain.decision.resolution import AnswerDecision
from pi_workflows.protocol.decisions import DecisionAnswer, OperatorProve, OperatorProved
from pi_workflows.protocol.reply import Reply
from pi_workflows.server.authority import ConnectionKind, Speaker
from pi_workflows.server.operations.call import Call, known, replied, shown
from pi_workflows.server.services import Services
from pi_workflows.server.session import Session


def connected(services: Services, session: Session) -> Speaker:
    """Return what the server knows about the other end of a connection.

    Args:
        services: The server.
        session: The connection; a proof that counts no more is taken from it.
    """
    if session.proof is None:
        return session.speaker
    try:
        holds = services.operator.holds(session.proof)
    except AuthorityDenied:
        holds = False
    if not holds:
        session.proof = None
        return session.speaker
    is_control = session.speaker.kind is ConnectionKind.CONTROL
    kind = ConnectionKind.OPERATOR if is_control else session.speaker.kind
    return replace(session.speaker, kind=kind, key_id=session.proof.key_id)


async def prove(services: Services, call: Call) -> Reply:
    """Judge a passphrase; the connection is the operator's for ten minutes.

    Args:
        services: The server.
        call: `operator.prove`.

    Returns:
        The key, and for how long.

    Raises:
        LimitExceeded: `operatorThrottled`.
        AuthorityDenied: `operatorMissing`, `operatorUnsafe`, `passphraseWrong`.
    """
    proof = await services.operator.prove(call.read(OperatorProve).passphrase)
    call.session.proof = proof
    return shown(OperatorProved(key_id=proof.key_id, expires_in_ms=OPERATOR_PROOF_MS))


async def answer(services: Services, call: Call) -> Reply:
    """Decide what a run asks a person; the run is queued to take the decision.

    Args:
        services: The server.
        call: `decision.answer`; its expected revision is the question's.

    Returns:
        The receipt, or the domain's refusal, which is remembered with the answer.

    Raises:
        IdempotencyConflict: The identity was used for another request.
        Unavailable: As `Writer.submit`.
    """
    payload = call.read(DecisionAnswer)
    if (reply := await known(services.writer, call.request)) is not None:
        return reply
    await services.deadlines.close_due(call.run_id)
    revision = call.request.expected_revision
    assert revision is not None, "the operation needs it"
    command = AnswerDecision(
        run_id=call.run_id,
        request_id=payload.request_id,
        request_revision=revision,
        submission_id=payload.submission_id,
        idempotency_key=call.request.idempotency_key,
        response=Blob.json(payload.response.document()),
        has_operator=_has_operator(services),
    )
    order = call.order(command, size_bytes=len(command.response.content))
    return replied(await services.writer.submit(order))


def _has_operator(services: Services) -> bool:
    """Whether there is a key with which a person could be proved."""
    try:
        services.operator.require()
    except AuthorityDenied:
        return False
    return True
