"""What a command says when it fails: lines for people, one document for programs, an exit code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    Corrupt,
    OutcomeUnknown,
    Problem,
    ProblemsFound,
    Refused,
    WorkflowsError,
    WrongUsage,
)
from pi_workflows.cli.escaping import escaped

PROGRAM: Final = "pi-workflows"
USAGE: Final = 2
INTERRUPTED: Final = 130
# As a program that SIGPIPE ended: nobody reads what it would say.
PIPE_CLOSED: Final = 141


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a command failed.

    Attributes:
        code: For programs, camelCase.
        message: For people, one line.
        exit_code: The exit code.
        field: What is at fault, when one thing is.
        hint: What to do next, when there is one thing.
        problems: Every mistake, when several were found together.
    """

    code: str
    message: str
    exit_code: int
    field: str | None = None
    hint: str | None = None
    problems: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, error: WorkflowsError, *, key: str | None = None) -> Self:
        """Describe an error.

        Args:
            error: What was raised.
            key: The command's idempotency key, with which it can be repeated.
        """
        hint = error.hint
        if isinstance(error, OutcomeUnknown) and key is not None:
            hint = f"Repeat it under the same key, which does it at most once: --key {key}"
        if error.reason_code == "inputInvalid":
            # What is wrong is the author's word; where a person gives it is ours.
            hint = "The workflow's input is given with --input JSON."
        return cls(
            code=error.reason_code,
            message=error.message,
            # The server cannot serve what is damaged, so on the wire it is unavailable.
            exit_code=(Corrupt.exit_code if error.reason_code == Corrupt.code else error.exit_code),
            field=error.field,
            hint=hint,
            problems=error.problems if isinstance(error, ProblemsFound) else (),
        )

    def document(self) -> dict[str, Json]:
        """Return `pi-workflows.cli-error.v1`."""
        document: dict[str, Json] = {
            "schema": "pi-workflows.cli-error.v1",
            "code": self.code,
            "message": _storable(self.message),
            "exitCode": self.exit_code,
        }
        if self.field is not None:
            document["field"] = _storable(self.field)
        if self.hint is not None:
            document["hint"] = _storable(self.hint)
        if self.problems:
            document["problems"] = problem_documents(self.problems)
        return document

    def lines(self) -> list[str]:
        """Return what people read: one line, or one for each of several mistakes."""
        if len(self.problems) > 1:
            each = [f"  {escaped(str(problem))}" for problem in self.problems]
            return [f"{PROGRAM}: {len(self.problems)} problems:", *each]
        message = escaped(self.message)
        if self.hint is not None:
            end = "" if message.endswith((".", "?", "!", ":")) else "."
            message = f"{message}{end} {escaped(self.hint)}"
        return [f"{PROGRAM}: {message}"]


def _storable(text: str) -> str:
    """Return a text that a document can hold: a path may have bytes that are not UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def problem_documents(problems: tuple[Problem, ...]) -> list[Json]:
    """Return mistakes as documents hold them."""
    return [
        {"code": p.code, "where": _storable(p.where), "message": _storable(p.message)}
        for p in problems
    ]


def unsent(error: Refused) -> WorkflowsError:
    """Return the refusal of a request that our own checks held back: wrong usage."""
    return WrongUsage(error.message, code=error.reason_code, field=error.field, hint=error.hint)
