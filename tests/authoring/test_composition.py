"""Including workflows: by the object, by reference, and everything that is wrong with doing so."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from pydantic import BaseModel

from pi_workflows import (
    Problem,
    ProblemsFound,
    Workflow,
    compute,
    define_workflow,
    edge,
    exit,  # noqa: A004 - what authors call it
    include,
    included_result,
    switch,
)
from pi_workflows.authoring.discovery import included
from pi_workflows.authoring.loading import Loaded, load
from pi_workflows.base.errors import LateImport, NotFound, PayloadInvalid


class Nothing(BaseModel):
    """An input without members."""


class Task(BaseModel):
    """An input that needs one."""

    name: str


class Sum(BaseModel):
    """What an exit gives."""

    total: int


def total(ctx: object) -> Sum:
    """Return an output with a model."""
    del ctx
    return Sum(total=1)


def one(ctx: object) -> int:
    """Return one."""
    del ctx
    return 1


def child(**changes: object) -> Workflow[Task]:
    """Return a workflow to include: `work`, then `end`, or `stop`."""
    parts: dict[str, object] = {
        "input": Task,
        "start": "work",
        "nodes": {"work": compute(one), "end": compute(total), "stop": compute(one)},
        "edges": [switch("work", on="$", cases={1: "end", 2: "stop"})],
        "exits": {"done": exit("end", output=Sum), "stopped": exit("stop")},
        "contract_id": "child.v1",
        **changes,
    }
    workflow: Workflow[Task] = define_workflow("child", **parts)  # type: ignore[arg-type]
    return workflow


def parent(**changes: object) -> Workflow[Nothing]:
    """Return a workflow that includes `child` as `a`."""
    parts: dict[str, object] = {
        "input": Nothing,
        "start": "a",
        "nodes": {"last": compute(one)},
        "includes": {"a": include(child(), input=lambda _: {"name": "x"})},
        "edges": [edge("a.done", "last"), edge("a.stopped", "a")],
        **changes,
    }
    workflow: Workflow[Nothing] = define_workflow("parent", **parts)  # type: ignore[arg-type]
    return workflow


def problems(make: Callable[[], object]) -> list[Problem]:
    """Return what is wrong with a definition."""
    with pytest.raises(ProblemsFound) as refused:
        make()
    return list(refused.value.problems)


def test_an_included_workflow_becomes_a_part_of_the_graph() -> None:
    """Its nodes stand under the mount's name, its edges in the mount's scope."""
    snapshot = parent().snapshot
    assert sorted(snapshot.nodes) == ["a/end", "a/stop", "a/work", "last"]
    assert snapshot.start_at == "a/work"
    assert [(each.source, each.scope, each.targets) for each in snapshot.edges] == [
        ("a/end", None, ("last",)),
        ("a/stop", None, ("a/work",)),
        ("a/work", "a", ("a/end", "a/stop")),
    ]
    (mount,) = snapshot.mounts
    assert (mount.workflow_name, mount.contract_id) == ("child", "child.v1")
    assert mount.exits["done"].output_model == f"{__name__}.Sum"
    assert mount.exits["stopped"].output_model is None


def test_workflows_nest_and_an_exit_may_be_that_of_an_inner_one() -> None:
    """The middle one is left where the inner one is left."""
    middle: Workflow[Task] = define_workflow(
        "middle",
        input=Task,
        start="inner",
        nodes={"mine": compute(one)},
        includes={"inner": include(child(), input=lambda ctx: ctx.input)},
        edges=[edge("inner.stopped", "mine")],
        exits={"all": exit("inner.done", output=Sum), "part": exit("mine")},
    )
    workflow = parent(
        includes={"a": include(middle, input=lambda _: {"name": "x"})},
        edges=[edge("a.all", "last"), edge("a.part", "a")],
    )
    snapshot = workflow.snapshot
    assert snapshot.start_at == "a/inner/work"
    assert {mount.path: mount.start_at for mount in snapshot.mounts} == {
        "a": "a/inner/work",
        "a/inner": "a/inner/work",
    }
    exits = snapshot.mount_by_path["a"].exits
    assert {name: way.node for name, way in exits.items()} == {
        "all": "a/inner/end",
        "part": "a/mine",
    }
    assert exits["all"].output_model == f"{__name__}.Sum"
    assert snapshot.edge_by_source["a/inner/stop"].scope == "a"
    assert workflow.at("a/inner").name == "child"
    assert workflow.node_by_path["a/inner/end"] is workflow.at("a/inner").nodes["end"]


def test_a_switch_after_an_exit_knows_the_exits_model() -> None:
    """A field that the exit's model has not is found at definition."""
    ways = [switch("a.done", on="$.totl", cases={1: "last"}), edge("a.stopped", "a")]
    assert [each.code for each in problems(partial(parent, edges=ways))] == ["switchFieldUnknown"]


INCLUDES = {"a": include(child(), input=lambda _: {"name": "x"})}


@pytest.mark.parametrize(
    ("changes", "code", "where", "words"),
    [
        ({"edges": [edge("a.dne", "last")]}, "exitUnknown", "edges.a.dne", "did you mean 'done'"),
        ({"edges": [edge("a", "last")]}, "edgeSourceMount", "edges.a", "a.done, a.stopped"),
        (
            {"edges": [edge("a.done", "a/stop"), edge("a.stopped", "last")]},
            "nodeInner",
            "edges.a.done",
            "lead to 'a'",
        ),
        ({"start": "a/end"}, "nodeInner", "start", "lead to 'a'"),
        ({"edges": [edge("a/end", "last")]}, "nodeInner", "edges.a/end", "from its exits"),
        (
            {"edges": [switch("a.done", on="$result.outcome", cases={"ok": "last"})]},
            "switchOnExit",
            "edges.a/end",
            "ends the run",
        ),
        (
            {"nodes": {"last": compute(one), "a": compute(one)}},
            "mountTwice",
            "includes.a",
            "rename",
        ),
        ({"includes": {**INCLUDES, "1": INCLUDES["a"]}}, "mountInvalid", "includes.1", "no name"),
        ({"includes": {"a": child()}}, "includesInvalid", "includes.a", "include(...)"),
        ({"includes": ["a"]}, "includesInvalid", "includes", "maps names"),
        ({"includes": {"a": include(child())}}, "includeInputMissing", "includes.a", "needs name"),
        (
            {"includes": {"a": include(child(), input=lambda: 1)}},  # type: ignore[misc, arg-type]
            "callbackInvalid",
            "includes.a",
            "exactly one argument",
        ),
        (
            {"includes": {"a": include(child(), input=lambda _: 1, contract_id="child.v2")}},
            "includeContractMismatch",
            "includes.a",
            "'child.v1', not 'child.v2'",
        ),
        ({"includes": {"a": include(7)}}, "includeInvalid", "includes.a", "no workflow"),  # type: ignore[arg-type]
        ({"includes": {"a": include("")}}, "includeInvalid", "includes.a", "no name or path"),
        (
            {
                "includes": {"a": include(child(exits={"done": exit("end")}), input=lambda _: 1)},
                "edges": [edge("a.done", "last")],
            },
            "exitMissing",
            "includes.a",
            "'a/stop' ends the workflow 'child'",
        ),
    ],
)
def test_what_is_wrong_with_an_include_is_said_in_the_authors_words(
    changes: dict[str, object], code: str, where: str, words: str
) -> None:
    """Each mistake is found at definition, with its place."""
    found = problems(partial(parent, **changes))
    assert (found[0].code, found[0].where) == (code, where), found
    assert words in found[0].message


@pytest.mark.parametrize(
    ("exits", "code", "words"),
    [
        ({"done": exit("ned")}, "exitNodeUnknown", "did you mean 'end'"),
        ({"done": exit("work")}, "exitNotLast", "an edge leaves 'work'"),
        ({"done": exit("end"), "again": exit("end")}, "exitTwice", "one node, one exit"),
        ({"stopped": exit("stop", output=Sum)}, "exitModelMismatch", "gives plain JSON"),
        ({"done": exit("end", output=Task)}, "exitModelMismatch", "declare the same model"),
        ({"a b": exit("end")}, "exitNameInvalid", "no name"),
        ({"done": exit(3)}, "exitNodeUnknown", "no name of a node"),  # type: ignore[arg-type]
        ({"done": exit("end", output=int)}, "outputNotModel", "pydantic model"),  # type: ignore[arg-type]
        ({"done": "end"}, "exitsInvalid", "exit(...)"),
        ({"done": exit("inner.end")}, "exitNodeUnknown", "no node is called"),
    ],
)
def test_what_is_wrong_with_an_exit_is_said(
    exits: dict[str, object], code: str, words: str
) -> None:
    """An exit names one last node, and gives what that gives."""
    found = problems(partial(child, exits=exits))
    assert found[0].code == code, found
    assert words in found[0].message


def test_a_result_is_read_with_the_exits_model() -> None:
    """What stands under a mount's name is an exit and what it gave."""
    workflow = child()
    done = included_result(workflow, {"exit": "done", "output": {"total": 4}})
    assert (done.exit, done.output) == ("done", Sum(total=4))
    assert included_result(workflow, {"exit": "stopped", "output": [1]}).output == [1]
    with pytest.raises(NotFound, match="no exit 'gone'"):
        included_result(workflow, {"exit": "gone", "output": 1})
    with pytest.raises(PayloadInvalid, match=r"pass ctx\.outputs"):
        included_result(workflow, {"total": 4})
    with pytest.raises(ProblemsFound, match=r"done\.output\.total"):
        included_result(workflow, {"exit": "done", "output": {}})


# --- references ----------------------------------------------------------------------------------

FILE = """
from pydantic import BaseModel
from pi_workflows import *
{imports}

class Input(BaseModel):
    name: str = ""

workflow = define_workflow({name!r}, input=Input, start={start!r}, contract_id={contract!r},
    nodes={{"end": compute(lambda ctx: VALUE)}}, includes={{{includes}}}, edges=[{edges}],
    exits={{"out": exit("end")}})
"""


def text(
    name: str = "sample",
    *,
    includes: str = "",
    imports: str = "VALUE = 1",
    contract: str | None = None,
) -> str:
    """Return a file's text: one node, after what it includes under `c`."""
    return FILE.format(
        name=name,
        imports=imports,
        contract=contract,
        includes=includes and f'"c": include({includes})',
        start="c" if includes else "end",
        edges='edge("c.out", "end")' if includes else "",
    )


@pytest.fixture
def loading(tmp_path: Path) -> Iterator[Callable[..., Loaded]]:
    """Loads a file of `tmp_path` as a project's; its modules are forgotten at the test's end."""
    before, kept = {*sys.modules}, list[Loaded]()

    def loaded(*arguments: object, **options: object) -> Loaded:
        options.setdefault("find", partial(_find, tmp_path))
        found: Loaded = load(*arguments, **options)  # type: ignore[arg-type]
        kept.append(found)
        return found

    yield loaded
    for each in kept:
        each.close()
    left = {name for name in {*sys.modules} - before if name.endswith(("_workflow", "common"))}
    assert not left, "a module outlived its workflow"


def _find(project: Path, reference: str, base: Path) -> Path:
    return included(reference, base, project, project / "mine")


def write(path: Path, content: str) -> Path:
    """Write a file, with its directory."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def test_a_reference_is_a_path_a_name_or_the_users(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """A path starts at the including file; a name is looked up as `start` does."""
    top = write(tmp_path / "a" / "top_workflow.py", text("top", includes="'../b/part_workflow.py'"))
    part = write(tmp_path / "b" / "part_workflow.py", text("part", includes="'base-part'"))
    base = write(tmp_path / "mine" / "base_part_workflow.py", text("base"))
    loaded = loading(top)
    assert [(each.mount, each.source.ref) for each in loaded.sources] == [
        ("", str(top)),
        ("c", str(part)),
        ("c/c", str(base)),
    ]
    assert sorted(loaded.workflow.snapshot.nodes) == ["c/c/end", "c/end", "end"]
    assert loaded.is_unchanged()
    shadow = write(tmp_path / ".pi" / "workflows" / "base_part_workflow.py", text("shadow"))
    assert not loaded.is_unchanged(), "the name means another file now"
    shadow.unlink()
    write(base, text("other"))
    assert not loaded.is_unchanged()


def test_the_files_of_each_mount_are_its_own(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """Helpers are listed where they were read; the revision of a mount covers them."""
    top = write(
        tmp_path / "top_workflow.py",
        text("top", includes="'./sub/part_workflow.py'", imports="from common import VALUE"),
    )
    write(tmp_path / "common.py", "VALUE = 1\n")
    write(tmp_path / "sub" / "part_workflow.py", text("part", imports="from helper import VALUE"))
    helper = write(tmp_path / "sub" / "helper.py", "VALUE = 2\n")
    first = loading(top)
    assert [(file.mount, Path(file.path).name) for file in first.source_files] == [
        ("", "top_workflow.py"),
        ("", "common.py"),
        ("c", "part_workflow.py"),
        ("c", "helper.py"),
    ]
    first.close()
    write(helper, "VALUE = 3\n")
    second = loading(top)
    assert second.workflow.digest == first.workflow.digest
    assert second.sources[0] == first.sources[0]
    assert second.sources[1].source.revision != first.sources[1].source.revision
    second.close()
    again = loading(top, second.source_files, second.workflow.digest, find=None)
    assert again.sources == second.sources
    again.close()
    with pytest.raises(ProblemsFound, match=r"helper\.py"):
        load(top, first.source_files)


def test_an_object_is_listed_with_the_file_that_defines_it(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """A helper that is also a mount stands in both lists."""
    imports = "VALUE = 1\nfrom part_workflow import workflow as part"
    top = write(tmp_path / "top_workflow.py", text("top", includes="part", imports=imports))
    part = write(tmp_path / "part_workflow.py", text("part"))
    loaded = loading(top)
    assert [(file.mount, file.path) for file in loaded.source_files] == [
        ("", str(top)),
        ("", str(part)),
        ("c", str(part)),
    ]
    assert loaded.workflow.at("c").name == "part"


def test_one_name_in_two_directories_is_refused(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """Two modules cannot both be `common`: an import at run time would find either."""
    del loading
    imports = "from common import VALUE"
    top = write(
        tmp_path / "top_workflow.py",
        text("top", includes="'./sub/part_workflow.py'", imports=imports),
    )
    write(tmp_path / "sub" / "part_workflow.py", text("part", imports=imports))
    write(tmp_path / "common.py", "VALUE = 1\n")
    write(tmp_path / "sub" / "common.py", "VALUE = 2\n")
    with pytest.raises(ProblemsFound, match="rename one of the files") as refused:
        load(top)
    assert refused.value.reason_code == "sourceInvalid"


@pytest.mark.parametrize("includes", ["'./{}_workflow.py'", "{}"])
def test_a_cycle_is_refused_with_the_whole_chain(
    includes: str, tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """By reference or by import, from the first file back to itself."""
    del loading
    names = ("first", "second", "third")
    for name, other in zip(names, ("second", "third", "first"), strict=True):
        imports = "VALUE = 1"
        if includes == "{}":
            imports += f"\nfrom {other}_workflow import workflow as {other}"
        body = text(name, includes=includes.format(other), imports=imports)
        write(tmp_path / f"{name}_workflow.py", body)
    with pytest.raises(ProblemsFound) as refused:
        load(tmp_path / "first_workflow.py")
    assert refused.value.reason_code == "includeCycle"
    chain = " -> ".join(str(tmp_path / f"{name}_workflow.py") for name in (*names, "first"))
    assert refused.value.problems[0].message.endswith(chain)


def test_a_file_in_a_references_place_must_keep_the_contract(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """What is found under the name declares the contract that is asked for."""
    includes = "'./part_workflow.py', contract_id='part.v1'"
    top = write(tmp_path / "top_workflow.py", text("top", includes=includes))
    part = write(tmp_path / "part_workflow.py", text("part", contract="part.v1"))
    loaded = loading(top)
    assert loaded.workflow.snapshot.mounts[0].contract_id == "part.v1"
    loaded.close()
    write(part, text("part", contract="part.v2"))
    with pytest.raises(ProblemsFound) as refused:
        load(top)
    assert refused.value.problems[0].code == "includeContractMismatch"


def test_a_reference_that_means_nothing_is_refused(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """By name, by path, and among the built-ins."""
    for reference, words in (
        ("nobody", "no workflow of this name"),
        ("./nobody_workflow.py", "no such file"),
        ("builtin:nobody", "no built-in workflow of this name"),
    ):
        top = write(tmp_path / "top_workflow.py", text("top", includes=repr(reference)))
        with pytest.raises(ProblemsFound, match=words) as refused:
            loading(top)
        assert refused.value.reason_code == "workflowUnknown"


def test_a_workflow_is_complete_once_it_is_loaded() -> None:
    """Until then only its own part can be read."""
    workflow = parent(includes={"a": include("somebody")})
    assert not workflow.is_resolved
    assert workflow.own.start_at == "a"
    with pytest.raises(ProblemsFound, match="load its file"):
        _ = workflow.snapshot


def test_an_included_file_sees_its_own_directory_only(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """Neither while it is loaded nor later does an import reach a module that nobody hashed."""
    top = write(
        tmp_path / "top_workflow.py",
        text("top", includes="'./sub/part_workflow.py'", imports="from common import VALUE"),
    )
    write(tmp_path / "common.py", "VALUE = 1\n")
    part = write(
        tmp_path / "sub" / "part_workflow.py", text("part", imports="from common import VALUE")
    )
    with pytest.raises(ProblemsFound, match="No module named 'common'"):
        load(top)
    write(tmp_path / "sub" / "late.py", "VALUE = 2\n")
    write(part, text("part"))
    loaded = loading(top)
    with pytest.raises(LateImport, match="'late' is imported after the workflow was loaded"):
        importlib.import_module("late")
    assert sys.modules["common"].VALUE == 1
    loaded.close()
    assert "common" not in sys.modules


def test_a_mount_that_an_expected_source_does_not_name_is_refused(
    tmp_path: Path, loading: Callable[..., Loaded]
) -> None:
    """The files that a run was started with say what every reference means."""
    top = write(tmp_path / "top_workflow.py", text("top", includes="'./part_workflow.py'"))
    write(tmp_path / "part_workflow.py", text("part"))
    loaded = loading(top)
    loaded.close()
    extra = [file.model_copy(update={"mount": "d"}) for file in loaded.source_files[1:]]
    for expected in (loaded.source_files[:1], [*loaded.source_files, *extra]):
        with pytest.raises(ProblemsFound) as refused:
            load(top, expected)
        assert refused.value.reason_code == "definitionChanged"
