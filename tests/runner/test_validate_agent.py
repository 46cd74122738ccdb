"""The validating child and what models submit or say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pi_workflows.authoring.loading import load
from pi_workflows.runner import validate
from tests.runner.child import spawn

WORKFLOW = """
import os
from pydantic import BaseModel
from pi_workflows import agent, assistant_message, decision, define_workflow, edge

class Task(BaseModel):
    pass

class Review(BaseModel):
    route: str
    count: int = 0

class Name(BaseModel):
    name: str

def judged(value):
    if value == "crash":
        raise RuntimeError("no good")
    if value == "set":
        return {1, 2}
    if value == "die":
        os._exit(3)
    return {"was": value}

def named(value) -> Name:
    return Name(name=str(value))

async def later(value):
    return value

workflow = define_workflow(
    "sample", input=Task, start="model",
    nodes={
        "model": agent(prompt="?", output=Review),
        "words": agent(prompt="?", output="a sentence"),
        "judged": agent(prompt="?", output="anything", validate=judged),
        "named": agent(prompt="?", output="a name", validate=named),
        "later": agent(prompt="?", output="a name", validate=later),
        "text": agent(prompt="?", output=assistant_message(max_chars=10)),
        "long": agent(prompt="?", output=assistant_message()),
        "pick": decision(choices=("y", "n"), question="?"),
    },
    edges=[edge("model", "words"), edge("words", "judged"), edge("judged", "named"),
           edge("named", "later"), edge("later", "text"), edge("text", "long"),
           edge("long", "pick")],
)
"""
Request = Callable[..., bytes]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A workflow file with an agent of each kind."""
    path = tmp_path / "sample_workflow.py"
    path.write_text(WORKFLOW)
    return path


@pytest.fixture
def request_for(path: Path) -> Request:
    """Makes the request line for a candidate, as the server would."""
    loaded = load(path)
    loaded.close()
    source = loaded.source.model_dump(mode="json", by_alias=True)
    document: dict[str, object] = {
        "projectPath": str(path.parent),
        "sourceFiles": [
            file.model_dump(mode="json", by_alias=True) for file in loaded.source_files
        ],
        "mounts": [{"mount": "", "source": source}],
        "definitionDigest": loaded.workflow.digest,
        "contract": {},
    }

    def line(node: str, candidate: object) -> bytes:
        kind = "assistant" if node in ("text", "long") else "agent"
        more = {"nodePath": node, "kind": kind, "candidate": candidate}
        return json.dumps({**document, **more}).encode()

    return line


@pytest.mark.parametrize(
    ("node", "candidate", "value"),
    [
        ("model", {"route": "a"}, {"route": "a", "count": 0}),
        ("model", '{"route": "a", "count": 2}', {"route": "a", "count": 2}),
        ("model", 'So:\n```json\n{"route": "a"}\n```', {"route": "a", "count": 0}),
        ("model", 'I say {"route": "a"}.', {"route": "a", "count": 0}),
        ("words", {"a": 1}, {"a": 1}),
        ("words", '{"a": 1}', {"a": 1}),
        ("words", "It quotes [1] and {}.", "It quotes [1] and {}."),
        ("judged", "plain", {"was": "plain"}),
        ("judged", "the [1] of it", {"was": [1]}),
        ("named", 7, {"name": "7"}),
        ("text", " as it is ", " as it is "),
        ("long", "x" * 100_000, "x" * 100_000),
        ("long", '{"a": 1}', '{"a": 1}'),
        ("pick", {"route": "y", "why": "so"}, {"route": "y", "why": "so"}),
        ("pick", 'It is {"route": "n"}', {"route": "n"}),
    ],
)
def test_what_fits_becomes_the_output(
    request_for: Request, node: str, candidate: object, value: object
) -> None:
    """A model's text is read leniently where something judges it, and as it is elsewhere."""
    assert validate.answer(request_for(node, candidate)) == {"valid": True, "value": value}


@pytest.mark.parametrize(
    ("node", "candidate", "error"),
    [
        ("model", {"rout": "a"}, "output.route: is required"),
        ("model", {"route": "a", "more": 1}, "output.more: unknown field"),
        ("model", "no JSON at all", "output: must be an object"),
        ("model", 'I say {"rout": "a"}.', "output.route: is required"),
        ("judged", "crash", "RuntimeError: no good"),
        ("judged", "set", "set"),
        ("later", "x", "validate is async"),
        ("text", "", "output: is empty"),
        ("text", " \n", "output: is empty"),
        ("text", {"a": 1}, "output: is empty"),
        ("text", "x" * 11, "output: has 11 characters; at most 10"),
        ("long", "x" * 600_000, "600"),
        ("pick", {"route": "x"}, '"route" is one of: "y", "n"'),
        ("pick", "y", '"route" is one of: "y", "n"'),
        ("pick", [], '"route" is one of: "y", "n"'),
        ("nothing", 1, "nothing: is no agent"),
    ],
)
def test_what_does_not_fit_says_why(
    request_for: Request, node: str, candidate: object, error: str
) -> None:
    """The model reads one line and may submit again: nothing else happened."""
    answer: Any = validate.answer(request_for(node, candidate))
    assert answer["valid"] is False
    assert error in answer["error"]
    assert "\n" not in answer["error"]


@pytest.mark.slow
def test_case_27_output_that_is_no_json(request_for: Request, path: Path) -> None:
    """From a model it is an error that can be repaired; the same child judges the next try."""
    answers, _ = spawn(
        request_for("judged", "set"),
        request_for("judged", "good"),
        cwd=path.parent,
        mode="validate",
    )
    assert [answer["valid"] for answer in answers] == [False, True]


@pytest.mark.slow
def test_case_26_a_validator_that_dies_answers_nothing(request_for: Request, path: Path) -> None:
    """A child that ends before it has answered accepts nothing; the server refuses for it."""
    with pytest.raises(Exception, match="exit status 3"):
        spawn(request_for("judged", "die"), cwd=path.parent, mode="validate")
