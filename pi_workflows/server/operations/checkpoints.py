"""The answer to a checkpoint: judged by the workflow's own code first, where it has a model."""

from __future__ import annotations

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import LimitExceeded, NotFound
from pi_workflows.base.limits import ANSWER_BYTES_MAX
from pi_workflows.base.sql import Read
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.request.answer import AnswerCheckpoint
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.runs import CheckpointAnswer
from pi_workflows.server.operations.call import Call, known, replied
from pi_workflows.server.services import Services
from pi_workflows.server.validation import Judgement, judgement
from pi_workflows.views.launch import launch_facts
from pi_workflows.views.request import RequestRow, request_row


async def answer(services: Services, call: Call) -> Reply:
    """Answer an open question; the run is queued to take the answer.

    Args:
        services: The server.
        call: `checkpoint.answer`; its expected revision is the question's.

    Returns:
        The receipt, or the domain's refusal.

    Raises:
        PayloadInvalid: `answerInvalid`: the checkpoint's model refuses it; the question stays open.
        TransitionDenied: `workflowSourceChanged`: the code that would judge it is another one.
        LimitExceeded: The answer is over its limit.
        IdempotencyConflict: The identity was used for another request.
        Refused: The workflow's code could not judge it; the question stays open.
        Unavailable: As `Writer.submit`.
    """
    payload = call.read(CheckpointAnswer)
    if (reply := await known(services.writer, call.request)) is not None:
        return reply
    value = _sized(payload.input)
    with services.store.snapshot() as read:
        asked = _asked(read, call.run_id, payload)
    if asked is not None:
        value = _sized(await asked.value(services.resolver))
    command = AnswerCheckpoint(
        run_id=call.run_id,
        request_id=payload.request_id,
        request_revision=call.request.expected_revision,
        submission_id=payload.submission_id,
        idempotency_key=call.request.idempotency_key,
        value=value,
    )
    order = call.order(command, size_bytes=len(value.content))
    return replied(await services.writer.submit(order))


def _asked(read: Read, run_id: str, payload: CheckpointAnswer) -> Judgement | None:
    """Return what a validator is asked; None if nothing is to judge.

    A question that is not there, or that this cannot answer, is the decider's to refuse.
    """
    try:
        question = request_row(read, payload.request_id)
    except NotFound:
        return None
    if question.run_id != run_id or not _is_open_to(question, payload.submission_id):
        return None
    snapshot = read.document(Snapshot.parse, launch_facts(read, run_id).definition_hash)
    node = snapshot.nodes.get(question.node_path)
    if node is None or node.output_model is None:
        return None
    return judgement(read, question, payload.input)


def _is_open_to(question: RequestRow, submission_id: str) -> bool:
    """Whether an answer would be judged: it is open, or was won by this very answer."""
    if question.kind != "checkpoint":
        return False
    return question.status == "pending" or question.accepted_submission_id == submission_id


def _sized(value: Json) -> Blob:
    """Return an answer as it is stored. Raises LimitExceeded when it is too large."""
    blob = Blob.json(value)
    if len(blob.content) > ANSWER_BYTES_MAX:
        raise LimitExceeded(
            f"input: {len(blob.content)} bytes are more than {ANSWER_BYTES_MAX}",
            code="valueTooLarge",
            field="input",
            hint="Put large data into a file and answer with its path.",
        )
    return blob
