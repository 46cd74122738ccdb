"""Asking a person at the terminal for the answer that a run waits for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid, RevisionConflict, WrongUsage
from pi_workflows.cli.decision import decision_example, decision_lines, question_of
from pi_workflows.cli.escaping import escaped, escaped_lines
from pi_workflows.cli.form import Field, fields_of
from pi_workflows.cli.outline import value_lines
from pi_workflows.cli.output import Output
from pi_workflows.cli.quoting import quoted
from pi_workflows.cli.values import json_or_text
from pi_workflows.protocol.artifact import plain

_INDENT: Final = "  "
_LINES_MAX: Final = 40


@dataclass(frozen=True, slots=True)
class Given:
    """An answer that a person typed."""

    value: Json


def question_lines(contract: Json) -> Iterator[str]:
    """Yield what a request asks: its summary, or what a model is told, then what it shows.

    Args:
        contract: The request's contract, fetched.
    """
    question = question_of(contract)
    if question is not None:
        yield from map(escaped, decision_lines(question))
        return
    members = contract if isinstance(contract, dict) else {}
    summary, prompt = members.get("summary"), members.get("prompt")
    if isinstance(summary, str):
        yield from escaped_lines(summary)
    elif isinstance(prompt, str):
        yield "The model of the run's session is asked:"
        for line in value_lines(prompt, lines_max=_LINES_MAX):
            yield f"{_INDENT}{line}"
    else:
        yield "An answer is needed."
    if "content" in members:
        for line in value_lines(members["content"], lines_max=_LINES_MAX):
            yield f"{_INDENT}{line}"


def schema_lines(contract: Json) -> Iterator[str]:
    """Yield what an answer has to look like; nothing when any value will do."""
    if question_of(contract) is not None:
        return
    schema = contract.get("answerSchema") if isinstance(contract, dict) else None
    if schema is None:
        return
    fields = fields_of(schema)
    if fields is not None:
        for field in fields:
            yield field.described()
        return
    yield from value_lines(schema, lines_max=_LINES_MAX)


def answer_example(contract: Json) -> str:
    """Return an answer as it is typed in a shell.

    Args:
        contract: The request's contract, fetched.

    Returns:
        An object of what must be there, or `VALUE` where the schema does not tell one; of a
        decision its first choice.
    """
    question = question_of(contract)
    if question is not None:
        return decision_example(question)
    schema = contract.get("answerSchema") if isinstance(contract, dict) else None
    fields = fields_of(schema)
    if fields is None:
        return "VALUE"
    needed = [field for field in fields if field.is_required] or list(fields[:1])
    answer: dict[str, Json] = {field.name: field.example() for field in needed}
    return quoted(canonical.encode(answer).decode())


class Interview:
    """Asks for one answer, as often as it takes.

    Args:
        output: Where the question is shown.
        contract: The request's contract, fetched.
        wait: Waits until the person has typed something, or ended the input; says whether the
            question is still open then, and returns at once when it closes.
    """

    def __init__(self, output: Output, contract: Json, wait: Callable[[], bool]) -> None:
        self._output = output
        self._wait = wait
        self._contract = plain(contract)
        schema = self._contract.get("answerSchema") if isinstance(self._contract, dict) else None
        self._fields = fields_of(schema)
        self._is_shown = False

    def answer(self) -> Given | None:
        """Return what the person types; None when they end the input instead.

        Raises:
            RevisionConflict: `requestChanged`: somebody else has answered.
        """
        if not self._is_shown:
            self._is_shown = True
            self._show()
        while True:
            try:
                return self._form(self._fields) if self._fields else self._whole()
            except (PayloadInvalid, WrongUsage) as error:
                self.refused(error.message)

    def refused(self, message: str) -> None:
        """Say why an answer was not accepted."""
        self._output.note(f"{_INDENT}Not accepted: {message}")

    def _show(self) -> None:
        """Show the question and how to answer it."""
        self._output.note("")
        for line in question_lines(self._contract):
            self._output.note(line)
        self._output.note("")
        if self._fields:
            self._output.note("Answer each field, or the whole as JSON. Ctrl-D leaves it open.")
            return
        for line in schema_lines(self._contract):
            self._output.note(f"{_INDENT}{line}")
        self._output.note("Type the answer, JSON or text, or @FILE. Ctrl-D leaves it open.")

    def _whole(self) -> Given | None:
        """Read a whole answer."""
        typed = self._read("answer")
        return None if typed is None else Given(_value(typed))

    def _form(self, fields: tuple[Field, ...]) -> Given | None:
        """Read an answer field by field; the first may be the whole answer as JSON."""
        answer: dict[str, Json] = {}
        for field in fields:
            typed = self._read(field.prompt(), may_be_empty=not field.is_required)
            if typed is not None and not answer and typed.startswith(("{", "@")):
                return Given(_value(typed))
            while typed:
                try:
                    answer[field.name] = field.read(typed)
                    break
                except PayloadInvalid as error:
                    self.refused(error.message)
                typed = self._read(field.prompt(), may_be_empty=not field.is_required)
            if typed is None:
                return None
        return Given(answer)

    def _read(self, prompt: str, *, may_be_empty: bool = False) -> str | None:
        """Read one line that says something; None at the end of the input."""
        return typed_line(prompt, self._wait, may_be_empty=may_be_empty)


def typed_line(prompt: str, wait: Callable[[], bool], *, may_be_empty: bool = False) -> str | None:
    """Read one line from the person at the terminal.

    Args:
        prompt: What is asked for.
        wait: As `Interview`.
        may_be_empty: Whether a line without anything is an answer.

    Returns:
        The line without its ends; None at the end of the input.

    Raises:
        RevisionConflict: `requestChanged`: the question has closed.
    """
    while True:
        sys.stderr.write(f"{escaped(prompt)}> ")
        sys.stderr.flush()
        if not wait():
            sys.stderr.write("\n")
            raise RevisionConflict(
                "The question is closed: it was answered elsewhere, or its run has ended.",
                code="requestChanged",
            )
        line = sys.stdin.readline()
        if not line:
            sys.stderr.write("\n")
            return None
        if line.strip() or may_be_empty:
            return line.strip()


def _value(typed: str) -> Json:
    """Return a whole answer: a dash is one, as there is nothing else to read from."""
    return typed if typed == "-" else json_or_text(typed, field="answer", is_text=False)
