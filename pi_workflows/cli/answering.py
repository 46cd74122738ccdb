"""Answering the question that a run asks."""

from __future__ import annotations

import hashlib
import sys
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    Refused,
    RevisionConflict,
    TransitionDenied,
    WrongUsage,
)
from pi_workflows.cli.connection import ask, client
from pi_workflows.cli.content import whole
from pi_workflows.cli.controlling import receipt_document
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.lookup import run_id_of
from pi_workflows.cli.outcome import WAITING
from pi_workflows.cli.question import Interview
from pi_workflows.cli.run_view import Interaction, RunView
from pi_workflows.cli.values import json_or_text, text_reason
from pi_workflows.client.blocking import Client
from pi_workflows.client.feed import Feed
from pi_workflows.protocol.mirror import RunMirror
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.runs import CheckpointAnswer

_ID_HEX: Final = 32
# What the server says of an answer that may be corrected.
_CORRECTABLE: Final = frozenset({"answerInvalid", "valueTooLarge", "valueTooDeep"})


def answer_run(
    invocation: Invocation,
    typed: str,
    value: str | None,
    *,
    is_text: bool,
    request_id: str | None,
) -> int:
    """Answer a run's question.

    Args:
        invocation: The invocation.
        typed: The run.
        value: The answer as it was typed; None asks for it on the terminal.
        is_text: It is text in any case.
        request_id: The only request that may be answered.

    Returns:
        The exit code.

    Raises:
        WrongUsage: There is neither a value nor a terminal.
        TransitionDenied: The run asks nothing.
        RevisionConflict: It asks something else.
        Refused: Its model refuses the answer; the request stays open.
    """
    answer: Json = None
    if value is not None:
        answer = json_or_text(value, field="VALUE", is_text=is_text)
    elif not invocation.output.can_ask:
        raise WrongUsage(
            "Missing argument 'VALUE'.",
            field="VALUE",
            hint=f"What is asked: pi-workflows show {typed}",
        )
    with client(invocation) as server:
        run_id = run_id_of(server, typed)
        view = RunView.parse(ask(server, Operation.VIEW_RUN_GET, {}, run_id=run_id).receipt)
        request = _pending(view, request_id)
        if value is None:
            reply = interview(invocation, server, view, request)
            if reply is None:
                invocation.output.note(f"{run_id} still waits for its answer.")
                return WAITING
        else:
            try:
                reply = _submit(server, run_id, request, answer, invocation.key)
            except Refused as error:
                if error.reason_code in _CORRECTABLE and not is_text:
                    error.hint = error.hint or text_reason(value)
                raise
    if invocation.is_json:
        invocation.output.document(receipt_document(Operation.CHECKPOINT_ANSWER, reply))
    else:
        invocation.output.line(f"{run_id} has its answer and goes on.")
        invocation.output.note(f"Follow it: pi-workflows watch {run_id}")
    return 0


def interview(
    invocation: Invocation, server: Client, view: RunView, request: Interaction
) -> Reply | None:
    """Ask the person at the terminal until an answer is accepted.

    Args:
        invocation: The invocation.
        server: The connected client.
        view: The run.
        request: What it asks.

    Returns:
        The reply; None when the person left without an answer.

    Raises:
        RevisionConflict: Another answer came first, or the run has ended.
        Unavailable: As `Client.request`.
    """
    contract = whole(server, view.run_id, request.contract)
    with server.watch_run(view.run_id) as feed:
        talk = Interview(invocation.output, contract, lambda: _typed(server, feed, request))
        count = 0
        while (given := talk.answer()) is not None:
            count += 1
            try:
                key = f"{invocation.key}.{request.request_id[-8:]}.{count}"
                return _submit(server, view.run_id, request, given.value, key)
            except (Refused, WrongUsage) as error:
                if error.reason_code not in _CORRECTABLE:
                    raise
                talk.refused(error.message)
    return None


def _typed(server: Client, feed: Feed[RunMirror], request: Interaction) -> bool:
    """Wait until something is typed; False as soon as the run asks something else, or nothing."""
    while (news := server.next_news(feed.watch, beside=sys.stdin.fileno())) is not None:
        mirror = feed.mirror
        failure = news.change.failure
        if failure is not None and failure.reason_code == "run_removed":
            return False
        if not mirror.is_stale:
            asked = RunView.parse(mirror.view).state.interaction
            if asked is None or asked.request_id != request.request_id:
                return False
    return True


def _pending(view: RunView, request_id: str | None) -> Interaction:
    """Return the question that is open."""
    request = view.state.interaction
    if request is None:
        if view.state.finished_at is not None:
            raise TransitionDenied(
                f"Run {view.run_id} has ended ({view.display.status}); it asks nothing any more.",
                code="runTerminal",
                field="run",
            )
        raise TransitionDenied(
            f"Run {view.run_id} is {view.display.status} and asks nothing.",
            code="nothingAsked",
            field="run",
            hint=f"Wait until it does: pi-workflows watch {view.run_id}",
        )
    if request_id not in (None, request.request_id):
        raise RevisionConflict(
            f"Run {view.run_id} asks {request.request_id}, not {request_id}.",
            code="requestChanged",
            field="--request",
        )
    return request


def _submit(server: Client, run_id: str, request: Interaction, value: Json, key: str) -> Reply:
    """Send an answer."""
    if request.kind != "checkpoint":
        raise TransitionDenied(
            f"Run {run_id} asks for a {request.kind}, which is not answered here.",
            code="kindUnsupported",
            field="run",
        )
    answer = CheckpointAnswer(
        request_id=request.request_id,
        submission_id=_submission_id(request.request_id, key),
        input=value,
    )
    return ask(
        server,
        Operation.CHECKPOINT_ANSWER,
        answer,
        run_id=run_id,
        expected_revision=request.revision,
        key=key,
    )


def _submission_id(request_id: str, key: str) -> str:
    """Return the identity of an answer: the same again when it is repeated under its key."""
    digest = hashlib.sha256(f"{request_id}\0{key}".encode()).hexdigest()
    return f"submission-{digest[:_ID_HEX]}"
