"""The resolver child: lists, checks and resolves workflows, one JSON line in, one out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.limits import INPUT_BYTES_MAX, TITLE_CHARS_MAX
from pi_workflows.protocol.workflows import WorkflowItems, WorkflowResolved
from pi_workflows.runner.resolve import Resolver
from tests.runner.child import spawn

WORKFLOW = '''"""Look at a repository.

More about it.
"""
from typing import Literal
from pydantic import BaseModel, field_validator
from pi_workflows import compute, define_workflow
print("noise on standard output")

class Limits(BaseModel):
    files: int = 10

class Task(BaseModel):
    repo: str
    mode: Literal["fast", "deep"] = "fast"
    limits: Limits = Limits()

    @field_validator("repo")
    @classmethod
    def known(cls, value):
        if value == "crash":
            {"a": 1}["b"]
        if value == "bad":
            raise ValueError("no such\\nrepository")
        return value

def title(task):
    if task.repo == "untitled":
        return 3
    return f"Health of  {task.repo}" if task.repo != "nameless" else int("x")

workflow = define_workflow(
    "repo-health", input=Task, title=title, start="a",
    nodes={"a": compute(lambda ctx: 1)}, edges=[],
)
'''
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with one workflow."""
    directory = tmp_path / "project" / ".pi" / "workflows"
    directory.mkdir(parents=True)
    (directory / "repo_health_workflow.py").write_text(WORKFLOW)
    return tmp_path / "project"


@pytest.fixture
def ask(project: Path) -> Iterator[Ask]:
    """Asks one resolver, in this process, about the project."""
    resolver = Resolver()

    def answer(operation: str, target: str | None = "repo-health", **more: object) -> Any:
        request: dict[str, Any] = {"operation": operation, "projectPath": str(project), **more}
        if target is not None:
            request["target"] = target
        return resolver.answer(json.dumps(request).encode())

    yield answer
    resolver.close()


def where(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """The codes and places of an answer's problems."""
    assert list(answer) == ["problems"], answer
    for problem in answer["problems"]:
        assert sorted(problem) == ["code", "message", "where"]
        assert "\n" not in problem["message"]
    return [(problem["code"], problem["where"]) for problem in answer["problems"]]


def test_resolve_answers_what_run_start_carries(ask: Ask, project: Path) -> None:
    """A name and an input give the identity, the definition, the whole input and the title."""
    answer = ask("resolve", input={"repo": "."})
    path = str(project / ".pi" / "workflows" / "repo_health_workflow.py")
    resolved = WorkflowResolved.parse(answer)
    assert resolved.workflow_name == "repo-health"
    assert resolved.workflow_source_ref == path
    assert (resolved.workflow_source.type, resolved.workflow_source.ref) == ("file", path)
    assert [(file.mount, file.path) for file in resolved.source_files] == [("", path)]
    assert answer["input"] == {"repo": ".", "mode": "fast", "limits": {"files": 10}}
    assert resolved.title == "Health of ."
    assert resolved.definition_snapshot["name"] == "repo-health"


def test_check_is_resolve_without_an_input(ask: Ask) -> None:
    """A check needs no input, and answers the same definition."""
    checked = ask("check")
    resolved = ask("resolve", input={"repo": "."})
    assert set(resolved) - set(checked) == {"input", "title"}
    assert checked == {name: resolved[name] for name in checked}


def test_a_path_gives_the_same_workflow(ask: Ask) -> None:
    """A target may be a path, relative to the project."""
    by_path = ask("check", ".pi/workflows/repo_health_workflow.py")
    assert by_path == ask("check", "repo-health")


@pytest.mark.parametrize(
    ("value", "expected", "message"),
    [
        (None, [("inputInvalid", "input")], "object"),
        ({}, [("inputInvalid", "input.repo")], "is required"),
        ({"repo": 3}, [("inputInvalid", "input.repo")], "must be a valid string"),
        ({"repo": ".", "mode": "slow"}, [("inputInvalid", "input.mode")], "'fast' or 'deep'"),
        ({"repo": ".", "rep": 1}, [("inputInvalid", "input.rep")], "unknown field"),
        (
            {"repo": ".", "limits": {"files": "x", "more": 1}},
            [("inputInvalid", "input.limits.files"), ("inputInvalid", "input.limits.more")],
            "integer",
        ),
        ({"repo": "bad"}, [("inputInvalid", "input.repo")], "no such repository"),
        ({"repo": "x" * 600_000}, [("valueTooLarge", "input")], "524,288"),
    ],
)
def test_an_input_is_judged_by_its_model(
    ask: Ask, value: object, expected: list[tuple[str, str]], message: str
) -> None:
    """Every field that does not fit is named by its path, in one answer."""
    answer = ask("resolve", input=value)
    assert where(answer) == expected
    assert message in answer["problems"][0]["message"]


def test_an_input_has_a_size(ask: Ask) -> None:
    """The whole input, with its defaults, is at most 512 KiB of canonical JSON."""
    rest = len(canonical.encode(ask("resolve", input={"repo": ""})["input"]))
    largest = "x" * (INPUT_BYTES_MAX - rest)
    # Its title would be too long, which is looked at after the size.
    assert where(ask("resolve", input={"repo": largest})) == [("titleInvalid", "title")]
    assert where(ask("resolve", input={"repo": f"{largest}x"})) == [("valueTooLarge", "input")]


def test_a_title_has_a_length(ask: Ask) -> None:
    """A title of 200 characters is taken, a longer one names its length."""
    fits = "x" * (TITLE_CHARS_MAX - len("Health of  "))
    assert len(ask("resolve", input={"repo": fits})["title"]) == TITLE_CHARS_MAX - 1
    answer = ask("resolve", input={"repo": f"{fits}x"})
    assert where(answer) == [("titleInvalid", "title")]
    assert "201 characters" in answer["problems"][0]["message"]


def test_an_absent_input_is_empty(ask: Ask) -> None:
    """Without an input the model judges `{}`."""
    assert where(ask("resolve")) == [("inputInvalid", "input.repo")]


def test_a_failing_validator_or_title_names_its_line(ask: Ask, project: Path) -> None:
    """An exception of the author's becomes one line at the author's line."""
    path = project / ".pi" / "workflows" / "repo_health_workflow.py"
    number = next(i for i, text in enumerate(WORKFLOW.splitlines(), 1) if '["b"]' in text)
    crash = ask("resolve", input={"repo": "crash"})
    assert where(crash) == [("inputInvalid", f"{path}:{number}")]
    assert crash["problems"][0]["message"] == "KeyError: 'b'"
    assert where(ask("resolve", input={"repo": "nameless"}))[0][0] == "titleInvalid"
    untitled = ask("resolve", input={"repo": "untitled"})
    assert where(untitled) == [("titleInvalid", "title")]
    assert "returned 3" in untitled["problems"][0]["message"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})", "Mute"),
    ],
)
def test_whatever_a_file_raises_is_one_problem(
    ask: Ask, project: Path, text: str, message: str
) -> None:
    """An interruption, and an exception that cannot say what it is, name the author's line."""
    path = project / ".pi" / "workflows" / "repo_health_workflow.py"
    path.write_text(text)
    answer = ask("check")
    assert where(answer) == [("importError", f"{path}:1")]
    assert answer["problems"][0]["message"] == message


def test_list_executes_nothing(ask: Ask, tmp_path: Path) -> None:
    """Listing reads the files: a failing one is listed, a broken one carries its error."""
    user = tmp_path / "definitions"
    user.mkdir()
    for name, text in (("repo_health", ""), ("crash", "1 / 0"), ("bad", "def f(:")):
        (user / f"{name}_workflow.py").write_text(text)
    answer = ask("list", None, definitionsPath=str(user))
    listed = WorkflowItems.parse(answer).items
    items = [item for item in listed if item.source != "builtin"]
    assert [item.name for item in listed[len(items) :]] == ["approved-change", "monitor"]
    assert [(item.name, item.source, item.summary) for item in items] == [
        ("repo-health", "project", "Look at a repository."),
        ("bad", "user", ""),
        ("crash", "user", ""),
        ("repo-health", "user", ""),
    ]
    assert items[1].error == "line 1: SyntaxError: invalid syntax"
    assert items[3].shadowed_by == items[0].path
    assert "error" not in answer["items"][0]


@pytest.mark.parametrize(
    ("line", "code", "place"),
    [
        (b"[", "notJson", "request"),
        (b"[]", "payloadInvalid", "request"),
        (b'{"operation":"list"}', "payloadInvalid", "projectPath"),
        (b'{"operation":"run","projectPath":"/"}', "payloadInvalid", "operation"),
        (b'{"operation":"list","projectPath":"x"}', "payloadInvalid", "projectPath"),
        (b'{"operation":"list","projectPath":"/","x":1}', "payloadInvalid", "x"),
        (b'{"operation":"check","projectPath":"/"}', "requestInvalid", "target"),
        (b'{"operation":"list","projectPath":"/","a":1,"a":2}', "duplicateKey", "request.a"),
    ],
)
def test_a_malformed_request_is_answered(line: bytes, code: str, place: str) -> None:
    """A request that is not one gets a problem that names the member."""
    answer: Any = Resolver().answer(line)
    assert where(answer) == [(code, place)]


def test_a_changed_file_is_loaded_again(ask: Ask, project: Path) -> None:
    """A kept workflow is used while its bytes are the same, and not a moment longer."""
    first = ask("check")
    assert ask("check") == first
    path = project / ".pi" / "workflows" / "repo_health_workflow.py"
    path.write_text(WORKFLOW.replace('"a"', '"b"'))
    second = ask("check")
    assert second["definitionDigest"] != first["definitionDigest"]
    path.write_text("1 / 0")
    assert where(ask("check")) == [("importError", f"{path}:1")]
    path.write_text(WORKFLOW)
    assert ask("check") == first


def line(operation: str, project: Path, **more: object) -> bytes:
    """A request line."""
    return json.dumps({"operation": operation, "projectPath": str(project), **more}).encode()


@pytest.mark.slow
def test_the_child_answers_each_line_and_ends_with_its_input(project: Path) -> None:
    """Canonical answers only on standard output, the author's printing on standard error."""
    answers, noise = spawn(
        line("list", project),
        line("resolve", project, target="repo-health", input={"repo": "."}),
        b"nonsense",
        line("resolve", project, target="repo-health", input={"repo": "/x"}),
        cwd=project,
    )
    assert [min(answer) for answer in answers] == [
        "items",
        "definitionDigest",
        "problems",
        "definitionDigest",
    ]
    assert answers[1]["input"]["repo"] == "."
    assert answers[3]["title"] == "Health of /x"
    assert noise == "noise on standard output\n"


@pytest.mark.slow
def test_every_process_resolves_alike(project: Path) -> None:
    """Two children with different hash seeds give the same digest and revision."""
    (project / ".pi" / "workflows" / "one.py").write_text("")
    (project / ".pi" / "workflows" / "two.py").write_text("")
    path = project / ".pi" / "workflows" / "repo_health_workflow.py"
    path.write_text(WORKFLOW + "\nfor name in {'two', 'one'}: __import__(name)\n")
    request = line("check", project, target="repo-health")
    first, _ = spawn(request, cwd=project)
    second, _ = spawn(request, cwd=project)
    assert first == second
    assert [Path(file["path"]).name for file in first[0]["sourceFiles"]] == [
        "repo_health_workflow.py",
        "one.py",
        "two.py",
    ]


@pytest.mark.slow
def test_the_project_is_not_on_the_import_path(project: Path) -> None:
    """Files of the project neither replace the engine's modules nor join a workflow unhashed."""
    for name in ("json", "trio", "argparse", "pydantic", "beside"):
        (project / f"{name}.py").write_text("raise RuntimeError")
    path = project / ".pi" / "workflows" / "repo_health_workflow.py"
    answers, _ = spawn(line("check", project, target="repo-health"), cwd=project)
    assert "definitionDigest" in answers[0]
    path.write_text("import beside")
    answers, _ = spawn(line("check", project, target="repo-health"), cwd=project)
    assert answers[0]["problems"][0]["message"] == "ModuleNotFoundError: No module named 'beside'"


@pytest.mark.slow
def test_a_workflow_cannot_read_the_requests(project: Path) -> None:
    """An author's file that reads standard input finds it empty."""
    path = project / ".pi" / "workflows" / "repo_health_workflow.py"
    path.write_text(f"import sys\nassert sys.stdin.read() == ''\n{WORKFLOW}")
    request = line("check", project, target="repo-health")
    answers, _ = spawn(request, request, cwd=project)
    assert ["definitionDigest" in answer for answer in answers] == [True, True]


@pytest.mark.slow
def test_a_request_has_a_size(project: Path) -> None:
    """A line over 8 MiB is refused, and nothing after it is taken for a request."""
    child = subprocess.run(
        [sys.executable, "-P", "-m", "pi_workflows.runner", "--mode", "resolve"],
        input=b"x" * (8 * 1024 * 1024 + 1) + b"\n" + line("list", project) + b"\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert child.returncode == 1
    assert where(json.loads(child.stdout)) == [("requestTooLarge", "request")]
