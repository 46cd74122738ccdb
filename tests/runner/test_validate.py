"""The validating child: judges an answer by the model of the node that asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_workflows.authoring.loading import Loaded, load
from pi_workflows.runner import validate
from tests.runner.child import spawn

WORKFLOW = """
from pydantic import BaseModel, field_validator
from pi_workflows import checkpoint, compute, define_workflow, edge

class Task(BaseModel):
    pass

class Answer(BaseModel):
    go_on: bool
    note: str = ""

    @field_validator("note")
    @classmethod
    def checked(cls, value):
        if value == "crash":
            raise RuntimeError("broken validator")
        return value

workflow = define_workflow(
    "sample", input=Task, start="ask",
    nodes={
        "ask": checkpoint("Go on?", output=Answer),
        "free": checkpoint("What?"),
        "end": compute(lambda ctx: 1),
    },
    edges=[edge("ask", "free"), edge("free", "end")],
)
"""
Request = Callable[..., bytes]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A workflow file with two checkpoints."""
    path = tmp_path / "sample_workflow.py"
    path.write_text(WORKFLOW)
    return path


@pytest.fixture
def request_for(path: Path) -> Request:
    """Makes the request line for a candidate, as the server would."""
    loaded: Loaded = load(path)
    loaded.close()
    source = loaded.source.model_dump(mode="json", by_alias=True)
    document: dict[str, object] = {
        "projectPath": str(path.parent),
        "sourceFiles": [
            file.model_dump(mode="json", by_alias=True) for file in loaded.source_files
        ],
        "mounts": [{"mount": "", "source": source}],
        "definitionDigest": loaded.workflow.digest,
        "nodePath": "ask",
        "kind": "checkpoint",
        "contract": {},
    }

    def line(candidate: object, **changes: object) -> bytes:
        return json.dumps({**document, "candidate": candidate, **changes}).encode()

    return line


def refusal(answer: Any) -> str:
    """The error of an answer that is a refusal, and nothing else."""
    assert sorted(answer) == ["error", "valid"]
    assert answer["valid"] is False
    assert "\n" not in answer["error"]
    return str(answer["error"])


def test_a_fitting_answer_is_completed(request_for: Request) -> None:
    """The value to store is the model's: defaults filled in, types as the model has them."""
    answer = validate.answer(request_for({"go_on": True}))
    assert answer == {"valid": True, "value": {"go_on": True, "note": ""}}


def test_without_a_model_any_json_fits(request_for: Request) -> None:
    """A checkpoint without a model takes the value unchanged."""
    for value in (None, "yes", [1, {"a": None}], {"b": 1.5}):
        answer = validate.answer(request_for(value, nodePath="free"))
        assert answer == {"valid": True, "value": value}


@pytest.mark.parametrize(
    ("candidate", "error"),
    [
        ("yes", "answer: must be an object"),
        ({}, "answer.go_on: is required"),
        ({"go_on": "perhaps"}, "answer.go_on: must be a valid boolean"),
        ({"go_on": True, "nte": ""}, "answer.nte: unknown field: remove it"),
        ({"nte": "", "note": 1}, "answer.go_on: is required; answer.note: must be"),
        ({"go_on": True, "note": "crash"}, "RuntimeError: broken validator"),
        ({"go_on": True, "note": "x" * 600_000}, "answer: 600"),
    ],
)
def test_an_answer_that_does_not_fit_says_why(
    request_for: Request, candidate: object, error: str
) -> None:
    """One line names each field that a person has to change."""
    assert error in refusal(validate.answer(request_for(candidate)))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"nodePath": "end"}, "end: is no checkpoint"),
        ({"nodePath": "nothing"}, "nothing: is no checkpoint"),
        ({"kind": "agent"}, "ask: is no agent"),
        ({"kind": "decision"}, "kind"),
        ({"definitionDigest": f"sha256:{'0' * 64}"}, "the definition is another"),
        ({"mounts": []}, "started with other sources"),
        ({"sourceFiles": []}, "names no file"),
        ({"more": 1}, "more: unknown field"),
    ],
)
def test_a_request_that_does_not_match_refuses_the_candidate(
    request_for: Request, changes: dict[str, object], error: str
) -> None:
    """Whatever is wrong with the request, the candidate is not accepted."""
    assert error in refusal(validate.answer(request_for({"go_on": True}, **changes)))


def test_a_changed_file_judges_nothing(request_for: Request, path: Path) -> None:
    """A file that is not the one that asked is not executed."""
    line = request_for({"go_on": True})
    path.write_text(f"raise SystemExit\n{WORKFLOW}")
    assert "the file changed since" in refusal(validate.answer(line))
    path.unlink()
    assert "cannot be read" in refusal(validate.answer(line))


def test_nonsense_is_a_refusal() -> None:
    """A line that is no request is answered all the same."""
    assert "not JSON" in refusal(validate.answer(b"{"))


@pytest.mark.slow
def test_the_child_judges_each_line(request_for: Request, path: Path) -> None:
    """The process answers one line for one line and ends with its input."""
    answers, _ = spawn(
        request_for({"go_on": False}), request_for({}), cwd=path.parent, mode="validate"
    )
    assert [answer["valid"] for answer in answers] == [True, False]
