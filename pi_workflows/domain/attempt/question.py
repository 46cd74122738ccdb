"""An open attempt asks a person or a model, and the run waits without a runner."""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import TransitionDenied
from pi_workflows.base.sql import Read
from pi_workflows.domain.attempt.boundary import required_attempt
from pi_workflows.domain.decision.request import requested
from pi_workflows.domain.display import RequestKind
from pi_workflows.domain.fact import Command, Context, Decided
from pi_workflows.domain.message import step
from pi_workflows.domain.request.state import TOLD_AS_STEP
from pi_workflows.domain.rows import AttemptChange, RequestRow
from pi_workflows.domain.run.events import RunWaiting
from pi_workflows.domain.run.state import snapshot_of, working_run
from pi_workflows.domain.value import require_json


@dataclass(frozen=True, slots=True)
class WaitForInput(Command):
    """The open attempt asks a person or a model; the runner leaves.

    Attributes:
        attempt_id: The open attempt.
        kind: What kind of answer it asks for.
        contract: The question as people and programs read it.
    """

    attempt_id: str
    kind: RequestKind
    contract: Blob


def wait_for_input(command: WaitForInput, context: Context, read: Read) -> Decided:
    """Decide that the run asks a person and waits without a runner.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It has ended, or the attempt is not the open one, or its node asks for
            another kind of answer, or for none.
        PayloadInvalid: `notJson`, the question comes as text.
    """
    state = working_run(read, command.run_id)
    attempt = required_attempt(read, command.run_id, command.attempt_id)
    require_json("contract", command.contract)
    node = snapshot_of(read, state).nodes[attempt.node_id]
    if node.request_kind != command.kind or attempt.status != "running":
        raise TransitionDenied("The attempt cannot ask for an answer.", code="nodeMismatch")
    request_id = ids.request_id(command.run_id, attempt.attempt_id)
    event = RunWaiting(
        lease=state.released(),
        run_id=state.run_id,
        run=state.run(status="waiting"),
        queue=state.queue("parked").model_copy(update={"consecutive_errors": 0}),
        attempt=AttemptChange(attempt_id=attempt.attempt_id, status="waiting"),
        interval=attempt.closed(context.at_ms),
        request=RequestRow(
            request_id=request_id,
            run_id=state.run_id,
            attempt_id=attempt.attempt_id,
            target_session_id=state.origin_session_id,
            kind=command.kind,
            contract_hash=command.contract.hex,
            revision=1,
            status="pending",
            accepted_submission_id=None,
            created_at=context.at_ms,
            updated_at=context.at_ms,
            settled_at=None,
            consumed_at=None,
        ),
    )
    drafts, blobs = [state.draft(event)], [command.contract]
    if command.kind == "decision":
        asked = requested(read, state, attempt, command.contract, context.at_ms)
        drafts += asked[0]
        blobs += asked[1]
    if command.kind in TOLD_AS_STEP and state.execution_mode == "interactive":
        told, content = step.told(
            read,
            step.Step(request_id, state.run_id, state.origin_session_id, 1),
            command.contract.content,
            key="initial",
            at_ms=context.at_ms,
            reason="initial",
        )
        drafts.append(told)
        blobs.append(content)
    return Decided(drafts=tuple(drafts), blobs=tuple(blobs), receipt={"requestId": request_id})
