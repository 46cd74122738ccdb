"""What a session is told of its step: when it begins, after a pause, and as a reminder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.limits import LIVE_CONTROL_CHARS_MAX
from pi_workflows.base.sql import Read
from pi_workflows.domain.fact import Draft
from pi_workflows.domain.message.events import StepReason
from pi_workflows.domain.message.state import created

if TYPE_CHECKING:
    from pi_workflows.base.canonical import Json

# What a model reads of its request beside the prompt; it never crowds the prompt out.
_INTRODUCTIONS: Final[dict[StepReason, str]] = {
    "initial": "",
    "resumed": (
        "This step goes on after an interruption. Work that you have done already counts.\n\n"
    ),
    "reminder": (
        "Your last turn ended without an answer to this step. Finish it now, or say in your answer"
        " why it cannot be done.\n\n"
    ),
}


class Step(NamedTuple):
    """The request that a step message tells.

    Attributes:
        request_id: The request.
        run_id: Its run.
        session_id: The session that is asked.
        revision: The request's revision, which an answer names.
    """

    request_id: str
    run_id: str
    session_id: str
    revision: int


def told(
    read: Read,
    step: Step,
    contract: bytes,
    *,
    key: str,
    at_ms: int,
    reason: StepReason,
    reminder_turn_id: str | None = None,
    offset: int = 0,
) -> tuple[Draft, Blob]:
    """Return the message that tells a session its step.

    Args:
        read: Reads of the deciding transaction.
        step: The request.
        contract: Its contract, canonical JSON.
        key: Names the message among those of the request.
        at_ms: When it is decided.
        reason: Why it is told.
        reminder_turn_id: The ended turn that a reminder is about.
        offset: How many messages of the session the same command makes before it.

    Returns:
        The new message's event, and the text that it names.
    """
    content = Blob.text(step_text(step, contract, reason))
    draft = created(
        read,
        run_id=step.run_id,
        session_id=step.session_id,
        kind="step",
        source_id=step.request_id,
        key=key,
        content=content,
        at_ms=at_ms,
        reason=reason,
        reminder_turn_id=reminder_turn_id,
        offset=offset,
    )
    return draft, content


def step_text(step: Step, contract: bytes, reason: StepReason) -> str:
    """Return the text of a step: why it is told, its prompt, and how it is answered."""
    document = canonical.decode(contract)
    members = document if isinstance(document, dict) else {}
    prompt = members.get("prompt")
    body = prompt if isinstance(prompt, str) else ""
    return f"{_INTRODUCTIONS[reason]}{body}\n\n{_control(step, members)}"


def _control(step: Step, contract: dict[str, Json]) -> str:
    """Return the block that says where the step belongs and what answers it."""
    node = contract.get("nodeId")
    lines = [
        "---",
        f"Workflow run {step.run_id}" + (f", step {node}" if isinstance(node, str) else ""),
        f"Request {step.request_id}, revision {step.revision}",
        *_answer_lines(contract),
    ]
    text = "\n".join(lines)
    if len(text) <= LIVE_CONTROL_CHARS_MAX:
        return text
    return f"{text[: LIVE_CONTROL_CHARS_MAX - 1]}…"


def _answer_lines(contract: dict[str, Json]) -> list[str]:
    """Return how the step is answered."""
    if contract.get("kind") == "assistant":
        limit = contract.get("maxChars")
        bound = f" of at most {limit:,} characters" if isinstance(limit, int) else ""
        return [f"Answer in plain text{bound}; your final message is the step's result."]
    lines = ["When you are done, call the workflow tool with action submit and your output."]
    expected, choices, schema = (
        contract.get(name) for name in ("expectedOutput", "choices", "answerSchema")
    )
    if isinstance(expected, str):
        lines.append(f"Expected output: {expected}")
    if isinstance(choices, list):
        lines.append("Choose one of: " + ", ".join(str(choice) for choice in choices))
    if schema is not None:
        lines.append(f"Its JSON Schema: {canonical.encode(schema).decode()}")
    return lines
