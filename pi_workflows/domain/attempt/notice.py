"""Notifications: an attempt that ends with a text for the session that its run belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import TransitionDenied
from pi_workflows.base.sql import Read
from pi_workflows.definition.snapshot import NoticeKind
from pi_workflows.domain.attempt.boundary import measured, required_attempt
from pi_workflows.domain.attempt.events import AttemptSettled
from pi_workflows.domain.fact import Command, Context, Decided
from pi_workflows.domain.message import state as messages
from pi_workflows.domain.rows import AttemptChange
from pi_workflows.domain.run.state import last_step, snapshot_of, working_run
from pi_workflows.domain.value import as_text

# A visit tells one thing; an attempt that a crash repeats would tell it under the same name.
_KEY: Final = "notice"


@dataclass(frozen=True, slots=True)
class Notify(Command):
    """The open attempt ends; its text is its output, and the session is told it.

    Attributes:
        attempt_id: The open attempt.
        text: The text, as JSON.
        kind: Whether it is one of several or the last word.
        elapsed_ns: Active time since the attempt started, in nanoseconds.
    """

    attempt_id: str
    text: Blob
    kind: NoticeKind
    elapsed_ns: int = 0


def notify(command: Notify, context: Context, read: Read) -> Decided:
    """Decide that a notification is given; a run without a session keeps it as its output alone.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It has ended, the attempt is not the open one, or no such notification.
        PayloadInvalid: `notText`.
    """
    state = working_run(read, command.run_id)
    attempt = required_attempt(read, command.run_id, command.attempt_id)
    node = snapshot_of(read, state).nodes[attempt.node_id]
    if node.notify_kind != command.kind or attempt.status != "running":
        raise TransitionDenied("The attempt gives no such notification.", code="nodeMismatch")
    text = as_text(command.text, field="text")
    step = last_step(read, command.run_id)
    event = AttemptSettled(
        run_id=command.run_id,
        node_id=attempt.node_id,
        step_index=step.step_index + 1 if step else 0,
        attempt=AttemptChange(
            attempt_id=attempt.attempt_id,
            status="completed",
            output_hash=command.text.hex,
            finished_at=context.at_ms,
        ),
        interval=measured(attempt, context.at_ms, command.elapsed_ns),
        request=None,
    )
    settled = state.draft(event)
    if state.execution_mode != "interactive":
        return Decided(drafts=(settled,), blobs=(command.text,))
    told = messages.created(
        read,
        run_id=state.run_id,
        session_id=state.origin_session_id,
        kind="notification",
        source_id=f"{state.run_id}/{attempt.node_id}/{attempt.visit_number}",
        key=_KEY,
        content=text,
        at_ms=context.at_ms,
    )
    return Decided(drafts=(settled, told), blobs=(command.text, text))
