"""Steering a run: one command, one receipt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import RevisionConflict
from pi_workflows.cli.connection import ask, client
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.lookup import run_id_of
from pi_workflows.client.blocking import Client
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.runs import RunRestarted

_SAID: Final[Mapping[Operation, tuple[str, str]]] = {
    Operation.RUN_PAUSE: ("is paused", "was paused already"),
    Operation.RUN_RESUME: ("goes on", "was not stopped, and goes on"),
    Operation.RUN_CANCEL: ("is cancelled", "was cancelled already"),
}


def pause_run(invocation: Invocation, typed: str) -> int:
    """Pause a run. Returns the exit code; raises as `ask`."""
    return _steer(invocation, Operation.RUN_PAUSE, typed)


def resume_run(invocation: Invocation, typed: str) -> int:
    """Let a run go on. Returns the exit code; raises as `ask`."""
    return _steer(invocation, Operation.RUN_RESUME, typed)


def cancel_run(invocation: Invocation, typed: str) -> int:
    """End a run. Returns the exit code; raises as `ask`."""
    return _steer(invocation, Operation.RUN_CANCEL, typed)


def _steer(invocation: Invocation, operation: Operation, typed: str) -> int:
    """Do one thing to a run."""
    with client(invocation) as server:
        run_id = run_id_of(server, typed)
        reply = ask(server, operation, {}, run_id=run_id, key=invocation.key)
    if invocation.is_json:
        invocation.output.document(receipt_document(operation, reply))
        return 0
    invocation.output.line(f"{run_id} {_words(operation, reply)}.")
    return 0


def _words(operation: Operation, reply: Reply) -> str:
    """Return what became of a run, as its receipt says it."""
    receipt = reply.receipt if isinstance(reply.receipt, dict) else {}
    done, already = _SAID[operation]
    if receipt.get("alreadyPaused") is True or receipt.get("alreadyRunning") is True:
        return already
    if receipt.get("waitingForInteraction") is True:
        return "waits for its answer again"
    detail = receipt.get("detail")
    is_news = isinstance(detail, str) and detail and detail not in done
    return f"{done} ({detail})" if is_news else done


def restart_run(invocation: Invocation, typed: str) -> int:
    """Start a run over. Returns the exit code; raises as `ask`."""
    with client(invocation) as server:
        run_id = run_id_of(server, typed)
        try:
            reply = _restart(server, run_id, invocation.key)
        except RevisionConflict:
            # It changed between the look and the command: look once more. The first refusal is
            # stored under the key, so the second try has one of its own.
            reply = _restart(server, run_id, f"{invocation.key}.2")
    if invocation.is_json:
        invocation.output.document(receipt_document(Operation.RUN_RESTART, reply))
        return 0
    started = RunRestarted.parse(reply.receipt)
    invocation.output.line(started.run_id)
    invocation.output.note(
        f"Restart {started.restart_number} of {run_id}."
        f" Follow it: pi-workflows watch {started.run_id}"
    )
    return 0


def _restart(server: Client, run_id: str, key: str) -> Reply:
    """Start a run over as it stands now."""
    view = ask(server, Operation.VIEW_RUN_GET, {}, run_id=run_id).receipt
    revision = view.get("runRevision") if isinstance(view, dict) else None
    return ask(
        server,
        Operation.RUN_RESTART,
        {},
        run_id=run_id,
        expected_revision=revision if isinstance(revision, int) else 0,
        key=key,
    )


def receipt_document(operation: Operation, reply: Reply) -> dict[str, Json]:
    """Return `pi-workflows.cli-receipt.v1`."""
    document: dict[str, Json] = {
        "schema": "pi-workflows.cli-receipt.v1",
        "operation": operation.value,
        "outcome": reply.outcome.value,
        "receipt": reply.receipt,
    }
    if reply.revision is not None:
        document["revision"] = reply.revision
    return document
