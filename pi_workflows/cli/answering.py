"""Answering the question that a run asks."""

from __future__ import annotations

import sys
from dataclasses import dataclass
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
from pi_workflows.cli.deciding import ballot, decide, submission_id
from pi_workflows.cli.decision import chosen
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.lookup import run_id_of
from pi_workflows.cli.outcome import WAITING
from pi_workflows.cli.question import Interview
from pi_workflows.cli.run_view import Interaction, RunView
from pi_workflows.cli.values import json_or_text, text_reason
from pi_workflows.client.blocking import Client
from pi_workflows.client.feed import Feed
from pi_workflows.definition.decision import DecisionQuestion, Response
from pi_workflows.protocol.mirror import RunMirror
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.runs import CheckpointAnswer

# What the server says of an answer that may be corrected.
_CORRECTABLE: Final = frozenset({"answerInvalid", "valueTooLarge", "valueTooDeep"})


@dataclass(frozen=True, slots=True)
class Typed:
    """An answer as it was typed.

    Attributes:
        value: The answer, or the choice of a decision; None asks for it on the terminal.
        is_text: It is text in any case.
        text: What is typed to a decision's choice.
    """

    value: str | None
    is_text: bool = False
    text: str | None = None


def answer_run(invocation: Invocation, named: str, typed: Typed, *, request_id: str | None) -> int:
    """Answer a run's question.

    Args:
        invocation: The invocation.
        named: The run.
        typed: The answer.
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
    if typed.value is not None:
        answer = json_or_text(typed.value, field="VALUE", is_text=typed.is_text)
    elif not invocation.output.can_ask:
        raise WrongUsage(
            "Missing argument 'VALUE'.",
            field="VALUE",
            hint=f"What is asked: pi-workflows show {named}",
        )
    with client(invocation) as server:
        run_id = run_id_of(server, named)
        view = RunView.parse(ask(server, Operation.VIEW_RUN_GET, {}, run_id=run_id).receipt)
        request = _pending(view, request_id)
        is_decision = request.kind == "decision"
        if typed.text is not None and not is_decision:
            raise WrongUsage("--input belongs to the choice of a decision.", field="--input")
        if typed.value is None:
            found = interview(invocation, server, view, request)
            if found is None:
                invocation.output.note(f"{run_id} still waits for its answer.")
                return WAITING
            reply = found
        elif is_decision:
            choice, text = typed.value, typed.text
            reply = _decide(invocation, server, view, request, choice=choice, text=text)
        else:
            reply = _answer(invocation, server, request, typed, answer, run_id=run_id)
    if invocation.is_json:
        operation = Operation.DECISION_ANSWER if is_decision else Operation.CHECKPOINT_ANSWER
        invocation.output.document(receipt_document(operation, reply))
    else:
        invocation.output.line(f"{run_id} has its answer and goes on.")
        invocation.output.note(f"Follow it: pi-workflows watch {run_id}")
    return 0


def _answer(
    invocation: Invocation,
    server: Client,
    request: Interaction,
    typed: Typed,
    answer: Json,
    *,
    run_id: str,
) -> Reply:
    """Send an answer; one that its model refuses may have been taken for what it is not."""
    assert typed.value is not None, "an answer is given"
    try:
        return _submit(server, run_id, request, answer, invocation.key)
    except Refused as error:
        if error.reason_code in _CORRECTABLE and not typed.is_text:
            error.hint = error.hint or text_reason(typed.value)
        raise


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
    if request.kind == "decision":
        return _asked_to_decide(invocation, server, view, request)
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


def _asked_to_decide(
    invocation: Invocation, server: Client, view: RunView, request: Interaction
) -> Reply | None:
    """Ask the person at the terminal for a decision; raises as `interview` and `decide`."""
    with server.watch_run(view.run_id) as feed:

        def choose(question: DecisionQuestion) -> Response | None:
            return ballot(invocation.output, question, lambda: _typed(server, feed, request))

        # The command's own key is that of the run's start, and it may ask several times.
        key = f"{invocation.key}.{request.request_id[-8:]}"
        return decide(server, view, request, choose, key=key)


def _decide(
    invocation: Invocation,
    server: Client,
    view: RunView,
    request: Interaction,
    *,
    choice: str,
    text: str | None,
) -> Reply:
    """Decide what the command line says: a choice, and what is typed to it."""
    reply = decide(
        server, view, request, lambda question: chosen(question, choice, text), key=invocation.key
    )
    assert reply is not None, "a choice that is given leaves nothing open"
    return reply


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
        submission_id=submission_id(request.request_id, key),
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
