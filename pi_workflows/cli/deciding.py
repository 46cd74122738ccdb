"""Deciding what only a person decides: shown in full, proved by the passphrase, sent once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Final

from pi_workflows.base.errors import ProtocolViolation, Refused, WrongUsage
from pi_workflows.cli.connection import ask
from pi_workflows.cli.content import whole
from pi_workflows.cli.decision import chosen, decision_lines, question_of
from pi_workflows.cli.device import Device, device
from pi_workflows.cli.output import Output
from pi_workflows.cli.question import typed_line
from pi_workflows.cli.run_view import Interaction, RunView
from pi_workflows.client.blocking import Client
from pi_workflows.definition.decision import Choice, DecisionQuestion, Response
from pi_workflows.protocol.decisions import DecisionAnswer, DecisionResponse, OperatorProve
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.reply import Reply

_PROOFS_MAX: Final = 3
_ID_HEX: Final = 32
_INDENT: Final = "  "


def decide(
    server: Client,
    view: RunView,
    request: Interaction,
    response: Callable[[DecisionQuestion], Response | None],
    *,
    key: str,
) -> Reply | None:
    """Show a decision at the terminal, let a person prove the passphrase, and send the answer.

    Args:
        server: The connected client.
        view: The run.
        request: What it asks.
        response: Says what is decided, once it was shown; None leaves it open.
        key: The idempotency key.

    Returns:
        The reply; None when it was left open.

    Raises:
        AuthorityDenied: `operatorMissing`: there is no terminal.
        Refused: There is no operator, the passphrase is wrong, somebody else was first, or the time
            is over.
        WrongUsage: `answerInvalid`, `passphraseMissing`.
    """
    question = question_of(whole(server, view.run_id, request.contract))
    if question is None:
        raise ProtocolViolation("The server sent a decision without a question.")
    with device() as terminal:
        deadline_at = view.state.human_decision.deadline_at if view.state.human_decision else None
        terminal.show(("", *decision_lines(question, deadline_at), ""))
        given = response(question)
        if given is None:
            return None
        terminal.show(_decided(question, given))
        _prove(server, terminal)
    answer = DecisionAnswer(
        request_id=request.request_id,
        submission_id=submission_id(request.request_id, key),
        response=DecisionResponse(choice=given.choice, input=given.input),
    )
    return ask(
        server,
        Operation.DECISION_ANSWER,
        answer,
        run_id=view.run_id,
        expected_revision=request.revision,
        key=key,
    )


def ballot(output: Output, question: DecisionQuestion, wait: Callable[[], bool]) -> Response | None:
    """Ask the person at the terminal what to decide; None when they end the input instead.

    Args:
        output: Where notes go.
        question: What is asked; it is shown already.
        wait: As `Interview`.

    Raises:
        RevisionConflict: `requestChanged`: somebody else has decided, or the time is over.
    """
    output.note("Type a choice. Ctrl-D leaves it open.")
    while (typed := typed_line("choice", wait)) is not None:
        try:
            text = _text(question, typed, wait)
            return chosen(question, typed, text)
        except WrongUsage as error:
            output.note(f"{_INDENT}Not accepted: {error.message}")
        except EOFError:
            return None
    return None


def submission_id(request_id: str, key: str) -> str:
    """Return the identity of an answer: the same again when it is repeated under its key."""
    digest = hashlib.sha256(f"{request_id}\0{key}".encode()).hexdigest()
    return f"submission-{digest[:_ID_HEX]}"


def _text(question: DecisionQuestion, typed: str, wait: Callable[[], bool]) -> str | None:
    """Ask for what belongs to a choice."""
    found: Choice | None = next((each for each in question.choices if each.id == typed), None)
    if found is None or found.input is None:
        return None
    text = typed_line(found.input.prompt, wait)
    if text is None:
        raise EOFError
    return text


def _decided(question: DecisionQuestion, response: Response) -> Iterator[str]:
    """Yield what is about to be decided."""
    label = next(each.label for each in question.choices if each.id == response.choice)
    yield f"You decide: {label}"
    for text in (response.input or {}).values():
        yield from (f"{_INDENT}{line}" for line in text.split("\n"))


def _prove(server: Client, terminal: Device) -> None:
    """Let a person prove the passphrase, three times at most."""
    for left in reversed(range(_PROOFS_MAX)):
        passphrase = terminal.secret("Passphrase of the operator")
        try:
            ask(server, Operation.OPERATOR_PROVE, OperatorProve(passphrase=passphrase))
        except Refused as error:
            if error.reason_code != "passphraseWrong" or not left:
                raise
            terminal.show((error.message,))
        else:
            return
