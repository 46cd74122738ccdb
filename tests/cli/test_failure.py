"""How errors read: a line for people, a document for programs, a code by what to do next."""

from __future__ import annotations

import pytest

from pi_workflows.base.errors import (
    Corrupt,
    Incompatible,
    NotFound,
    OutcomeUnknown,
    Problem,
    ProblemsFound,
    Refused,
    RevisionConflict,
    TransitionDenied,
    Unavailable,
    WorkflowsError,
    WrongUsage,
)
from pi_workflows.cli.failure import Failure


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Refused(), 1),
        (NotFound(), 1),
        (RevisionConflict(), 1),
        (TransitionDenied(), 1),
        (WrongUsage(), 2),
        (Unavailable(), 3),
        (Incompatible(), 4),
        (Corrupt(), 4),
        (OutcomeUnknown(), 5),
    ],
)
def test_exit_codes(error: WorkflowsError, code: int) -> None:
    """Each class of error has the exit code of the contract."""
    failure = Failure.of(error)
    assert failure.exit_code == code
    assert failure.document()["exitCode"] == code
    assert len(failure.lines()) == 1


def test_an_unknown_outcome_says_how_to_repeat_it() -> None:
    """The key is printed with the option that takes it, in text and for programs."""
    failure = Failure.of(OutcomeUnknown(), key="key-1")
    assert "--key key-1" in failure.lines()[0]
    assert "--key key-1" in str(failure.document()["hint"])


def test_a_line_is_one_line_and_safe() -> None:
    """Whatever a message holds, it is shown in one line without commands for the terminal."""
    failure = Failure.of(Refused("a\nb\x1b[2J", hint="c\u202ed"))
    assert failure.lines() == [r"pi-workflows: a\nb\x1b[2J. c\u202ed"]


def test_one_of_several_problems_is_one_line() -> None:
    """A single problem reads like any error, several are listed."""
    one = Problem("inputInvalid", "input.repo", "is required")
    assert Failure.of(ProblemsFound([one])).lines() == ["pi-workflows: input.repo: is required"]
    assert Failure.of(ProblemsFound([one, one])).lines() == [
        "pi-workflows: 2 problems:",
        "  input.repo: is required",
        "  input.repo: is required",
    ]


def test_a_missing_input_says_where_it_is_given() -> None:
    """Who starts a workflow without what it needs learns the option."""
    missing = ProblemsFound(
        [Problem("inputInvalid", "input.repo", "is required")], code="inputInvalid"
    )
    assert Failure.of(missing).lines() == [
        "pi-workflows: input.repo: is required. The workflow's input is given with --input JSON."
    ]


def test_a_document_leaves_out_what_it_does_not_have() -> None:
    """Field, hint and problems stand only where there are some."""
    bare = Failure.of(Refused("no", code="c")).document()
    assert bare == {
        "schema": "pi-workflows.cli-error.v1",
        "code": "c",
        "message": "no",
        "exitCode": 1,
    }
    full = Failure.of(NotFound("no", field="f", hint="h")).document()
    assert (full["field"], full["hint"]) == ("f", "h")


def test_damage_found_by_the_server_is_damage() -> None:
    """A value that the server finds damaged has the exit code of corrupt state."""
    said = Failure.of(Unavailable("It is damaged.", code=Corrupt.code))
    assert said.exit_code == Corrupt.exit_code


def test_a_path_of_any_bytes_can_be_told() -> None:
    """A failure that names bytes which are not UTF-8 still makes a document."""
    said = Failure("code", "no file a\udcff", 1, field="a\udcff", hint="see a\udcff")
    assert said.document()["message"] == r"no file a\udcff"
