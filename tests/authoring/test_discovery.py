"""Which files are workflows, and which one a name means."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_workflows.authoring.discovery import Listed, Origin, directories, find
from pi_workflows.authoring.discovery import listed as listed_with_builtins
from pi_workflows.base.errors import ProblemsFound


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project directory."""
    (tmp_path / "project" / ".pi" / "workflows").mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    """The user's own directory."""
    (tmp_path / "definitions").mkdir()
    return tmp_path / "definitions"


def add(directory: Path, *names: str, text: str = "") -> None:
    """Write files into a project's or the user's directory."""
    inner = directory / ".pi" / "workflows"
    for name in names:
        ((inner if inner.exists() else directory) / name).write_text(text)


def listed(searched: tuple[tuple[Origin, Path], ...]) -> list[Listed]:
    """List what the package does not ship."""
    return [item for item in listed_with_builtins(searched) if item.source != "builtin"]


def test_files_are_listed_in_order_with_their_summary(project: Path, definitions: Path) -> None:
    """Every file of the form is listed, sorted, with the first line of its docstring."""
    add(project, "b_two_workflow.py", text='"""Do a thing.\n\nMore.\n"""\nraise RuntimeError')
    add(project, "a_workflow.py", "helper.py", "a_workflow.pyc", "workflow.py")
    add(definitions, "c_workflow.py")
    items = listed(directories(project, definitions))
    assert [(item.name, item.source, item.summary) for item in items] == [
        ("a", "project", ""),
        ("b-two", "project", "Do a thing."),
        ("c", "user", ""),
    ]
    assert not any(item.error or item.shadowed_by for item in items)


def test_only_regular_files_directly_in_the_directory_count(project: Path) -> None:
    """Links, directories and files further down are no workflows by name."""
    inner = project / ".pi" / "workflows"
    (inner / "dir_workflow.py").mkdir()
    (inner / "sub").mkdir()
    (inner / "sub" / "x_workflow.py").write_text("")
    add(project, "real_workflow.py")
    (inner / "link_workflow.py").symlink_to(inner / "real_workflow.py")
    assert [item.name for item in listed(directories(project, None))] == ["real"]


def test_the_first_directory_wins(project: Path, definitions: Path) -> None:
    """A project's file answers to the name; the user's own is listed as shadowed."""
    add(project, "a_workflow.py")
    add(definitions, "a_workflow.py", "b_workflow.py")
    by_path = {item.path: item for item in listed(directories(project, definitions))}
    assert by_path[str(definitions / "a_workflow.py")].shadowed_by == str(
        project / ".pi" / "workflows" / "a_workflow.py"
    )
    assert find("a", project, definitions).parent.name == "workflows"
    assert find("b", project, definitions) == definitions / "b_workflow.py"


def test_two_files_of_one_name_are_an_error(project: Path, definitions: Path) -> None:
    """Neither answers to the name, and a name further down does not step in silently."""
    inner = project / ".pi" / "workflows"
    # Only a hyphen in the stem gives the name of another file; such a file is an error anyway.
    add(project, "a_b_workflow.py", "a-b_workflow.py")
    add(definitions, "a_b_workflow.py")
    items = [item for item in listed(directories(project, definitions)) if item.name == "a-b"]
    assert [item.error is not None for item in items] == [True, True, False]
    with pytest.raises(ProblemsFound, match="rename one of them"):
        find("a-b", project, definitions)
    assert items[2].shadowed_by in {str(inner / "a_b_workflow.py"), str(inner / "a-b_workflow.py")}


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("A_workflow.py", "", "lower-case"),
        ("_x_workflow.py", "", "lower-case"),
        ("pause_workflow.py", "", "a command's name"),
        ("bad_workflow.py", "x = 1\ndef f(:", "line 2: SyntaxError"),
        ("nul_workflow.py", "\0", "null bytes"),
    ],
)
def test_a_file_that_cannot_start_says_why(project: Path, name: str, text: str, error: str) -> None:
    """A bad name or a syntax error is an error item; the other files are listed as ever."""
    add(project, name, text=text)
    add(project, "good_workflow.py")
    items = {Path(item.path).name: item for item in listed(directories(project, None))}
    assert error in (items[name].error or "")
    assert items["good_workflow.py"].error is None


def test_a_path_always_works(project: Path, tmp_path: Path) -> None:
    """A path is taken as it is, relative to the project; its name is no matter."""
    add(project, "a_workflow.py")
    (tmp_path / "other.py").write_text("")
    assert find(".pi/workflows/a_workflow.py", project, None).is_file()
    assert find("../other.py", project, None).resolve() == tmp_path / "other.py"
    assert find(str(tmp_path / "other.py"), project, None) == tmp_path / "other.py"


def test_an_unknown_target_helps(project: Path) -> None:
    """The error names the places that were searched, and a near name or the form of a path."""
    add(project, "repo_health_workflow.py")
    for target, hint in (
        ("repo-heath", "did you mean 'repo-health'?"),
        ("x", "./x_workflow.py"),
        ("sub/x", f"there is no file {project}/sub/x"),
        ("x.py", f"there is no file {project}/x.py"),
        ("./x_workflow.py", f"there is no file {project}/x_workflow.py"),
        (f"{project}/x.py", "there is no such file"),
    ):
        with pytest.raises(ProblemsFound) as error:
            find(target, project, None)
        problem = error.value.problems[0]
        assert problem.code == "workflowUnknown"
        assert problem.where == target
        assert hint in problem.message


def test_a_path_longer_than_any_file_has_no_file(project: Path) -> None:
    """A path that the system refuses is as unknown as one where nothing is."""
    with pytest.raises(ProblemsFound, match="there is no file"):
        find(f"./{'x' * 5_000}", project, None)


def test_missing_directories_hold_nothing(tmp_path: Path) -> None:
    """A project without workflows is a project without workflows."""
    assert listed(directories(tmp_path, tmp_path / "none")) == []
