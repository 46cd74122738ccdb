"""What a runner proposes for models and sessions, as the domain gets it."""

from __future__ import annotations

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.domain.attempt.boundary import StartAttempt
from pi_workflows.domain.attempt.notice import Notify
from pi_workflows.protocol import proposals as wire
from pi_workflows.protocol.content import BlobRef, JsonRef, Ref, puts
from pi_workflows.server.boundaries import boundary_of
from pi_workflows.server.content import Incoming


def start(prompt: Ref) -> wire.Propose:
    """Return the proposal that an agent begins."""
    command = wire.StartAttempt(
        attempt_id="attempt-1",
        node_path="plan",
        visit=1,
        attempt_number=1,
        node_type="agent",
        timeout_ms=0,
        prompt=prompt,
    )
    return wire.Propose(seq=1, commands=(command,))


def test_a_prompt_is_kept_as_the_text_itself() -> None:
    """It travels as JSON, inline or put, and is stored as text that people read."""
    content = Incoming()
    long = Blob.json("é" * 20_000)
    for part in puts(long):
        content.put(part)
    for reference, text in ((JsonRef(value="Plan."), "Plan."), (BlobRef.of(long), "é" * 20_000)):
        boundary = boundary_of("run-1", "epoch", start(reference), content, leaves=False)
        (command,) = boundary.commands
        assert isinstance(command, StartAttempt)
        assert command.prompt == Blob.text(text)
        assert boundary.size_bytes > 0
    assert not content.digests


@pytest.mark.parametrize("value", ["", 1, None, {"text": "x"}])
def test_a_prompt_is_text(value: Json) -> None:
    """Anything else is refused before a command exists."""
    with pytest.raises(PayloadInvalid) as refused:
        boundary_of("run-1", "epoch", start(JsonRef(value=value)), Incoming(), leaves=False)
    assert refused.value.reason_code == "notText"


def test_a_notification_raises_its_run_by_one() -> None:
    """It settles the attempt: the next proposal of the runner meets the next revision."""
    command = wire.Notify(
        attempt_id="attempt-1", text=JsonRef(value="done"), kind="final", elapsed_ns=7
    )
    proposal = wire.Propose(seq=1, commands=(command,))
    boundary = boundary_of("run-1", "epoch", proposal, Incoming(), leaves=False)
    assert boundary.commands == (Notify("run-1", "attempt-1", Blob.json("done"), "final", 7),)
    assert boundary.raises == 1
