"""Loading workflow files: what is executed is what was hashed."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pi_workflows.authoring.loading import Loaded, load
from pi_workflows.authoring.nodes import ComputeNode
from pi_workflows.base.errors import LateImport, Problem, ProblemsFound

WORKFLOW = """
from pydantic import BaseModel
from pi_workflows import compute, define_workflow
{imports}

class Task(BaseModel):
    repo: str = "."

def work(ctx):
    {body}

workflow = define_workflow(
    {name!r}, input=Task, start="a", nodes={{"a": compute(work)}}, edges=[]
)
"""


def workflow_text(imports: str = "", body: str = "return 1", name: str = "sample") -> str:
    """The text of a workflow file."""
    return WORKFLOW.format(imports=imports, body=body, name=name)


@pytest.fixture
def loading() -> Iterator[Callable[..., Loaded]]:
    """`load`, whose modules are forgotten at the test's end."""
    before = {*sys.modules}
    kept: list[Loaded] = []

    def loaded(*arguments: object, **options: object) -> Loaded:
        workflow: Loaded = load(*arguments, **options)  # type: ignore[arg-type]
        kept.append(workflow)
        return workflow

    yield loaded
    for workflow in kept:
        workflow.close()
    ours = {"sample_workflow", "helper", "late", "tools"}
    assert not ours & ({*sys.modules} - before), "a module outlived its workflow"


def refused(path: Path, **options: object) -> tuple[str, list[Problem]]:
    """Load a file that cannot be; return the error's code and problems."""
    with pytest.raises(ProblemsFound) as error:
        load(path, **options)  # type: ignore[arg-type]
    return error.value.reason_code, list(error.value.problems)


def write(directory: Path, **files: str) -> Path:
    """Write files by stem; return the path of the workflow file."""
    for stem, text in files.items():
        path = directory / f"{stem}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text)
    return directory / "sample_workflow.py"


def run(loaded: Loaded) -> object:
    """Call the function of the one node."""
    node = loaded.workflow.nodes["a"]
    assert isinstance(node, ComputeNode)
    unused: Any = None
    return node.function(unused)


def test_the_source_is_the_file_and_its_helpers(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """Every module imported from the directory is listed with its digest, the workflow first."""
    path = write(
        tmp_path,
        sample_workflow=workflow_text("import helper, tools.parts"),
        helper="import json\nVALUE = 1\n",
        unused="raise RuntimeError",
    )
    write(tmp_path / "tools", __init__="", parts="")
    loaded = loading(path)
    assert [file.path for file in loaded.source_files] == [
        str(tmp_path / name)
        for name in ("sample_workflow.py", "helper.py", "tools/__init__.py", "tools/parts.py")
    ]
    for file in loaded.source_files:
        assert file.sha256 == hashlib.sha256(Path(file.path).read_bytes()).hexdigest()
    assert loaded.source.ref == str(path)
    assert loaded.source.revision == loaded.source_revision


def test_a_changed_helper_is_another_revision_of_the_same_definition(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """The source revision covers helper modules; the digest of the graph does not."""
    path = write(tmp_path, sample_workflow=workflow_text("import helper"), helper="A = 1")
    first = loading(path)
    assert first.is_unchanged()
    write(tmp_path, helper="A = 2")
    assert not first.is_unchanged()
    first.close()
    second = loading(path)
    assert second.source_revision != first.source_revision
    assert second.workflow.digest == first.workflow.digest


def test_the_loaded_bytes_are_the_hashed_ones(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """A stale `.pyc` beside the file is neither read nor replaced."""
    path = write(tmp_path, sample_workflow=workflow_text("import helper", "return helper.A"))
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    (cache / f"helper.{sys.implementation.cache_tag}.pyc").write_bytes(b"stale")
    write(tmp_path, helper="A = 'fresh'")
    assert run(loading(path)) == "fresh"
    assert [file.read_bytes() for file in cache.iterdir()] == [b"stale"]


def test_the_standard_library_is_not_shadowed(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """A file named like a module of the standard library, or of the engine, is never imported."""
    path = write(
        tmp_path,
        sample_workflow=workflow_text("import colorsys, orjson", "return colorsys.__file__"),
        colorsys="raise RuntimeError",
        orjson="raise RuntimeError",
    )
    loaded = loading(path)
    assert not str(run(loaded)).startswith(str(tmp_path))
    assert len(loaded.source_files) == 1


def test_a_late_import_is_refused(tmp_path: Path, loading: Callable[..., Loaded]) -> None:
    """A module of the directory that was not hashed does not join a running workflow."""
    path = write(tmp_path, sample_workflow=workflow_text(body="import late"), late="")
    loaded = loading(path)
    with pytest.raises(LateImport, match=r"import it at the top of sample_workflow\.py") as error:
        run(loaded)
    assert error.value.reason_code == "lateImport"
    assert error.value.field == str(tmp_path / "late.py")


def test_loaded_helpers_and_installed_modules_stay_importable(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """Only unhashed files of the directory are refused later."""
    body = "import helper, xml.dom.minidom; return helper.A"
    path = write(tmp_path, sample_workflow=workflow_text("import helper", body), helper="A = 1")
    assert run(loading(path)) == 1


def test_the_runner_executes_only_what_was_resolved(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """With the expected files and digest, the same bytes load as the same workflow."""
    path = write(tmp_path, sample_workflow=workflow_text("import helper"), helper="A = 1")
    first = loading(path)
    first.close()
    again = loading(path, first.source_files, first.workflow.digest)
    assert again.source_files == first.source_files
    assert again.workflow.digest == first.workflow.digest


def test_every_changed_file_is_named(tmp_path: Path, loading: Callable[..., Loaded]) -> None:
    """A changed and a missing file are both reported, and nothing was executed."""
    mark = tmp_path / "executed"
    imports = f"import helper, tools\nopen({str(mark)!r}, 'w').close()"
    path = write(tmp_path, sample_workflow=workflow_text(imports), helper="", tools="")
    first = loading(path)
    first.close()
    mark.unlink()
    (tmp_path / "helper.py").write_text("changed = 1")
    (tmp_path / "tools.py").unlink()
    code, problems = refused(path, expected=first.source_files)
    assert code == "workflowSourceChanged"
    assert [(problem.code, problem.where) for problem in problems] == [
        ("workflowSourceChanged", str(tmp_path / "helper.py")),
        ("workflowSourceChanged", str(tmp_path / "tools.py")),
    ]
    assert not mark.exists()


def test_a_moved_workflow_is_a_changed_source(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """The first expected file is the workflow file itself."""
    first = loading(write(tmp_path, sample_workflow=workflow_text()))
    first.close()
    other = write(tmp_path / "other", sample_workflow=workflow_text())
    assert refused(other, expected=first.source_files)[0] == "workflowSourceChanged"
    assert refused(other, expected=())[0] == "workflowSourceChanged"


def test_an_unexpected_helper_is_a_changed_source(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """A run that would import another file than when it was resolved does not start."""
    text = workflow_text("try:\n    import helper\nexcept ImportError:\n    pass")
    path = write(tmp_path, sample_workflow=text)
    first = loading(path)
    first.close()
    write(tmp_path, helper="")
    code, problems = refused(path, expected=first.source_files)
    assert code == "workflowSourceChanged"
    assert problems[0].where == str(tmp_path / "helper.py")


def test_another_definition_is_refused(tmp_path: Path, loading: Callable[..., Loaded]) -> None:
    """Equal bytes that define another graph, by what surrounds them, do not run."""
    imports = "import os\nNAME = os.environ.get('PIW_TEST_NAME', 'one')"
    text = workflow_text(imports).replace("'sample'", "NAME")
    path = write(tmp_path, sample_workflow=text)
    first = loading(path)
    first.close()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PIW_TEST_NAME", "two")
        code, problems = refused(
            path, expected=first.source_files, definition_digest=first.workflow.digest
        )
    assert code == "definitionChanged"
    assert problems[0].where == str(path)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("x = 1\n\n1 / 0", 3, "ZeroDivisionError: division by zero"),
        ("def f(:\n", 1, "SyntaxError: invalid syntax"),
        ("import no_such_module", 1, "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit(3)", 1, "SystemExit: 3"),
        ("raise RuntimeError('one\\ntwo')", 1, "RuntimeError: one two"),
        ("raise RuntimeError('x' * 9000)", 1, "RuntimeError: xxx"),
        ("from pi_workflows import nothing", 1, "ImportError: cannot import name 'nothing'"),
        ("from pi_workflows import define_workflow\ndefine_workflow('a')", 2, "TypeError"),
    ],
)
def test_a_failing_import_names_the_authors_line(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    """An exception becomes one bounded line and its place in the author's file, no traceback."""
    path = write(tmp_path, sample_workflow=text)
    code, problems = refused(path)
    assert code == "importError"
    assert problems[0].where == f"{path}:{line}"
    assert problems[0].message.startswith(message)
    assert len(problems[0].message) <= 1_000
    assert "\n" not in problems[0].message


def test_a_failing_helper_names_the_helpers_line(tmp_path: Path) -> None:
    """The innermost line in the author's files is the one to look at."""
    path = write(tmp_path, sample_workflow="import helper", helper="\nint('x')\n")
    _, problems = refused(path)
    assert problems[0].where == f"{tmp_path / 'helper.py'}:2"
    assert "helper" not in sys.modules


def test_mistakes_of_the_definition_come_as_they_are(tmp_path: Path) -> None:
    """A definition's problems are not wrapped into an import error."""
    text = workflow_text(name="pause").replace('start="a"', 'start="b"')
    code, problems = refused(write(tmp_path, sample_workflow=text))
    assert code == "definitionInvalid"
    assert {problem.code for problem in problems} == {"nameReserved", "startUnknown"}


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "`workflow` is missing"), ("workflow = 3", "`workflow` is no workflow")],
)
def test_a_file_exposes_its_workflow(tmp_path: Path, text: str, message: str) -> None:
    """A file without a workflow says how to end it."""
    code, problems = refused(write(tmp_path, sample_workflow=text))
    assert code == "workflowMissing"
    assert problems[0].message.startswith(message)


@pytest.mark.parametrize(
    "name", ["json.py", "sample-x_workflow.py", "sample_workflow.txt", "os.py", "pytest.py"]
)
def test_a_file_name_is_a_module_name(tmp_path: Path, name: str) -> None:
    """A file that cannot be imported under its name, or would hide a module, is refused."""
    (tmp_path / name).write_text(workflow_text())
    assert refused(tmp_path / name)[0] == "sourceInvalid"


@pytest.mark.slow
def test_a_workflow_has_so_many_files(tmp_path: Path, loading: Callable[..., Loaded]) -> None:
    """A workflow with its helpers is at most 256 files."""
    names = [f"helper{i}" for i in range(256)]
    write(tmp_path, **dict.fromkeys(names, ""))
    path = write(tmp_path, sample_workflow=workflow_text(f"import {', '.join(names[:255])}"))
    loaded = loading(path)
    assert len(loaded.source_files) == 256
    loaded.close()
    write(tmp_path, sample_workflow=workflow_text(f"import {', '.join(names)}"))
    code, problems = refused(path)
    assert (code, problems[0].message) == ("sourceInvalid", "a workflow imports at most 256 files")


def test_unreadable_sources(tmp_path: Path) -> None:
    """A missing file, a directory and an oversized file are refused by name."""
    assert refused(tmp_path / "sample_workflow.py")[0] == "sourceInvalid"
    (tmp_path / "dir_workflow.py").mkdir()
    assert refused(tmp_path / "dir_workflow.py")[0] == "sourceInvalid"
    with (tmp_path / "big_workflow.py").open("wb") as file:
        file.truncate(5 * 1024 * 1024)
    code, problems = refused(tmp_path / "big_workflow.py")
    assert code == "sourceInvalid"
    assert "4,194,304" in problems[0].message


def test_a_link_is_followed_once(tmp_path: Path, loading: Callable[..., Loaded]) -> None:
    """The identity of a linked workflow is the file itself, with the helpers beside it."""
    path = write(tmp_path / "real", sample_workflow=workflow_text("import helper"), helper="")
    link = tmp_path / "linked_workflow.py"
    link.symlink_to(path)
    assert loading(link).source.ref == str(path)
