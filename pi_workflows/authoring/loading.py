"""Loading a workflow file: its bytes are read once, hashed, and exactly those bytes are executed.

The modules that the file imports from its own directory belong to its source: they are read, hashed
and executed the same way, and nothing may join them once the workflow is loaded. No `.pyc` is read
or written, and the directory is not on `sys.path`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Final, cast

from pydantic import BaseModel

from pi_workflows.authoring.failures import AuthorCode
from pi_workflows.authoring.workflow import Workflow
from pi_workflows.base.errors import LateImport, Problem, ProblemsFound
from pi_workflows.base.limits import SOURCE_BYTES_MAX, SOURCE_FILES_MAX
from pi_workflows.definition.source import SourceFile, WorkflowSource, source_revision

_ROOT_MOUNT: Final = ""
# What the engine itself may import at any time: a file of the workflow's directory never stands in
# for it.
_OWN_MODULES: Final = frozenset(
    {"annotated_types", "orjson", "pi_workflows", "pydantic", "pydantic_core", "trio"}
)
_SHADOWLESS: Final = sys.stdlib_module_names | _OWN_MODULES


@dataclass(frozen=True, slots=True)
class _Source:
    """One file, read once."""

    content: bytes
    sha256: str


class Loaded:
    """A loaded workflow and the identity of its source.

    Attributes:
        workflow: The definition.
        source_files: The workflow file first, then its helper modules by path.
        source_revision: The hex SHA-256 over that list.
    """

    def __init__(self, workflow: Workflow[BaseModel], directory: _Directory) -> None:
        self.workflow = workflow
        self.source_files = directory.source_files()
        self.source_revision = source_revision(self.source_files)
        self._directory = directory

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the source files: how an author's lines are recognized in a traceback."""
        return frozenset(file.path for file in self.source_files)

    @property
    def source(self) -> WorkflowSource:
        """The identity of the source, as a run stores it."""
        root = self.source_files[0].path
        return WorkflowSource(type="file", ref=root, revision=self.source_revision)

    def is_unchanged(self) -> bool:
        """Return whether every source file still has the bytes that were loaded."""
        return not any(True for _ in changed(self.source_files))

    def close(self) -> None:
        """Forget the loaded modules, so that the file can be loaded again in this process."""
        self._directory.close()


def load(
    path: Path | str,
    expected: Sequence[SourceFile] | None = None,
    definition_digest: str | None = None,
) -> Loaded:
    """Load a workflow file in this process, which executes it.

    Args:
        path: The file; symbolic links are followed once, at the start.
        expected: The files that were hashed when the workflow was resolved, the workflow file
            first. Every one is verified before anything is executed, and no other file of the
            directory is imported.
        definition_digest: The digest that the definition must have, checked after loading.

    Returns:
        The workflow. Until `close`, its helper modules stay importable and any other module of its
        directory is refused with `LateImport`.

    Raises:
        ProblemsFound: Nothing stays loaded. `workflowSourceChanged`: a file is not as expected.
            `definitionChanged`: the digest is another. `importError`: executing the file failed.
                `definitionInvalid`: the definition has
            mistakes, all in `problems`. `sourceInvalid`: the file cannot be read or named so.
    """
    root = Path(os.path.realpath(path))
    directory = _Directory(root, expected)
    if expected is not None:
        directory.verify(expected)
    with ExitStack() as undo:
        undo.callback(directory.close)
        directory.open()
        workflow = directory.execute()
        if definition_digest is not None and workflow.digest != definition_digest:
            raise found(
                "definitionChanged",
                str(root),
                "the definition is another than the run was started with",
            )
        loaded = Loaded(workflow, directory)
        undo.pop_all()
    directory.seal()
    return loaded


def changed(files: Iterable[SourceFile]) -> Iterator[Problem]:
    """Yield a problem (`workflowSourceChanged`) for each file whose bytes are not those hashed."""
    for file in files:
        verified = _verified(file)
        if isinstance(verified, Problem):
            yield verified


def _verified(file: SourceFile) -> _Source | Problem:
    try:
        source = _read(Path(file.path))
    except ProblemsFound as error:
        return Problem("workflowSourceChanged", file.path, error.problems[0].message)
    if source.sha256 != file.sha256:
        message = "the file changed since the workflow was resolved"
        return Problem("workflowSourceChanged", file.path, message)
    return source


class _Directory(MetaPathFinder, Loader):
    """Finds and executes the modules of one workflow's directory.

    Args:
        root: The workflow file.
        expected: The only files that may be used, or None for any of the directory.
    """

    def __init__(self, root: Path, expected: Sequence[SourceFile] | None) -> None:
        self._root = root
        self._base = str(root.parent)
        self._expected = None if expected is None else {file.path for file in expected}
        self._sources: dict[str, _Source] = {}
        self._modules: list[str] = []
        self._refused: list[Problem] = []
        self._sealed = False

    def verify(self, expected: Sequence[SourceFile]) -> None:
        """Read every expected file and keep its bytes; ProblemsFound names each that differs."""
        problems: list[Problem] = []
        if not expected or expected[0].path != str(self._root):
            problems.append(
                Problem(
                    "workflowSourceChanged",
                    str(self._root),
                    "the file is no longer where the workflow was resolved",
                )
            )
        for file in expected:
            verified = _verified(file)
            if isinstance(verified, Problem):
                problems.append(verified)
            else:
                self._sources[file.path] = verified
        if problems:
            raise ProblemsFound(problems, code="workflowSourceChanged")

    def open(self) -> None:
        """Stand first among the finders."""
        name = self._root.stem
        if self._root.suffix != ".py" or not name.isidentifier():
            raise found(
                "sourceInvalid",
                str(self._root),
                "a workflow file is called <stem>_workflow.py, its stem of letters, digits and '_'",
            )
        if name in sys.modules or name in _SHADOWLESS:
            raise found(
                "sourceInvalid",
                str(self._root),
                f"a module is already called {name!r}: rename the file",
            )
        sys.meta_path.insert(0, self)

    def seal(self) -> None:
        """Let no further file join."""
        self._sealed = True

    def close(self) -> None:
        """Leave the finders and forget the modules."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in self._modules:
            sys.modules.pop(name, None)
        self._modules.clear()

    def source_files(self) -> tuple[SourceFile, ...]:
        """Return the files that were used: the workflow file first, then the helpers by path."""
        root = str(self._root)
        helpers = sorted(path for path in self._sources if path != root)
        return tuple(
            SourceFile(mount=_ROOT_MOUNT, path=path, sha256=self._sources[path].sha256)
            for path in (root, *helpers)
        )

    def execute(self) -> Workflow[BaseModel]:
        """Execute the workflow file and return what it exposes as `workflow`."""
        path = str(self._root)
        self._source(path)
        spec = self._spec(self._root.stem, path, None)
        module = importlib.util.module_from_spec(spec)
        self._modules.append(spec.name)
        sys.modules[spec.name] = module
        with AuthorCode(self._sources, code="importError"):
            self.exec_module(module)
        if self._refused:
            raise ProblemsFound(self._refused, code="workflowSourceChanged")
        workflow: object = getattr(module, "workflow", None)
        if not isinstance(workflow, Workflow):
            fault = "is no workflow" if workflow is not None else "is missing"
            raise found(
                "workflowMissing",
                path,
                f"`workflow` {fault}: end the file with workflow = define_workflow(...)",
            )
        return cast("Workflow[BaseModel]", workflow)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module of this directory that has the name, if there is one."""
        del target
        parent = self._parent(fullname, path)
        if parent is None:
            return None
        tail = fullname.rpartition(".")[2]
        package = Path(parent, tail)
        for file, places in (
            (package / "__init__.py", [str(package)]),
            (Path(parent, f"{tail}.py"), None),
        ):
            if file.is_file():
                path_text = str(file)
                self._admit(fullname, path_text)
                self._source(path_text)
                return self._spec(fullname, path_text, places)
        return None

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python make the module."""
        del spec

    def exec_module(self, module: ModuleType) -> None:
        """Execute the bytes that were hashed."""
        origin = module.__file__
        assert origin is not None, module
        self._modules.append(module.__name__)
        code = compile(self._sources[origin].content, origin, "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - running the author's file is what loading is

    def _parent(self, fullname: str, path: Sequence[str] | None) -> str | None:
        """Return the directory in which the module would lie, when that is ours to serve."""
        if "." not in fullname:
            return None if fullname in _SHADOWLESS else self._base
        places = [] if path is None else [*path]
        if fullname.rpartition(".")[0] not in self._modules or len(places) != 1:
            return None
        return places[0]

    def _admit(self, fullname: str, file: str) -> None:
        if file in self._sources:
            return
        if self._sealed:
            message = (
                f"{file}: {fullname!r} is imported after the workflow was loaded:"
                f" import it at the top of {self._root.name}"
            )
            raise LateImport(message, field=file)
        if self._expected is not None:
            problem = Problem(
                "workflowSourceChanged", file, "was not imported when the workflow was resolved"
            )
            self._refused.append(problem)
            raise LateImport(f"{file}: {problem.message}", field=file)
        if len(self._sources) >= SOURCE_FILES_MAX:
            raise found(
                "sourceInvalid", file, f"a workflow imports at most {SOURCE_FILES_MAX} files"
            )

    def _source(self, path: str) -> _Source:
        source = self._sources.get(path)
        if source is None:
            source = self._sources[path] = _read(Path(path))
        return source

    def _spec(self, name: str, file: str, places: list[str] | None) -> ModuleSpec:
        spec = importlib.util.spec_from_file_location(
            name, file, loader=self, submodule_search_locations=places
        )
        assert spec is not None, file
        return spec


def _read(path: Path) -> _Source:
    """Read a whole regular file. Raises ProblemsFound when it is none, or too large."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise found("sourceInvalid", str(path), "is no regular file")
            content = file.read(SOURCE_BYTES_MAX + 1)
    except OSError as error:
        raise found("sourceInvalid", str(path), f"cannot be read: {error.strerror}") from None
    if len(content) > SOURCE_BYTES_MAX:
        raise found("sourceInvalid", str(path), f"is over {SOURCE_BYTES_MAX:,} bytes")
    return _Source(content, hashlib.sha256(content).hexdigest())


def found(code: str, where: str, message: str) -> ProblemsFound:
    """Return an error of one problem, under the problem's own code."""
    return ProblemsFound([Problem(code, where, message)], code=code)
