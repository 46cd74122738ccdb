"""The modules of one directory of workflow files, executed from bytes that were read once.

What a workflow file imports from its own directory belongs to its source: it is read, hashed and
executed the same way, and nothing may join it once the workflow is loaded. No `.pyc` is read or
written, and the directory is not on `sys.path`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import stat
import sys
from collections.abc import Mapping, Sequence
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
from pi_workflows.definition.source import SourceFile

# What the engine itself may import at any time: a file of the workflow's directory never stands in
# for it.
_OWN_MODULES: Final = frozenset(
    {"annotated_types", "orjson", "pi_workflows", "pydantic", "pydantic_core", "trio"}
)
_SHADOWLESS: Final = sys.stdlib_module_names | _OWN_MODULES


@dataclass(frozen=True, slots=True)
class Source:
    """One file, read once.

    Attributes:
        content: Its bytes.
        sha256: Their hex SHA-256.
    """

    content: bytes
    sha256: str


def read_source(path: Path) -> Source:
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
    return Source(content, hashlib.sha256(content).hexdigest())


def verified(file: SourceFile) -> Source | Problem:
    """Return a file that still has the bytes that were hashed, or what is wrong with it."""
    try:
        source = read_source(Path(file.path))
    except ProblemsFound as error:
        return Problem("workflowSourceChanged", file.path, error.problems[0].message)
    if source.sha256 != file.sha256:
        message = "the file changed since the workflow was resolved"
        return Problem("workflowSourceChanged", file.path, message)
    return source


def found(code: str, where: str, message: str) -> ProblemsFound:
    """Return an error of one problem, under the problem's own code."""
    return ProblemsFound([Problem(code, where, message)], code=code)


class Directory(MetaPathFinder, Loader):
    """Finds and executes the modules of one directory.

    Of several directories one is shown at a time while files are executed: the modules of the
    others are neither found nor importable then.

    Attributes:
        sources: The files that were read, by path.
    """

    def __init__(self, base: str, expected: Mapping[str, Source] | None) -> None:
        """Serve a directory that is not shown yet.

        Args:
            base: Its path.
            expected: The only files that may be used, verified, or None for any of the directory.
        """
        self.sources: dict[str, Source] = dict(expected or {})
        self._base = base
        self._is_expected = expected is not None
        self._modules: dict[str, ModuleType] = {}
        self._executing: list[str] = []
        self._refused: list[Problem] = []
        self._used: list[str] = []
        self._entry = ""
        self._sealed = False

    def show(self) -> None:
        """Stand first among the finders, with the modules that are loaded.

        Raises:
            ProblemsFound: Another module has the name of one of them (`sourceInvalid`).
        """
        sys.meta_path.insert(0, self)
        for name, module in self._modules.items():
            if name in sys.modules and sys.modules[name] is not module:
                raise found(
                    "sourceInvalid",
                    module.__file__ or self._base,
                    f"an included workflow's directory has a module {name!r} too: rename one of"
                    " the files",
                )
            sys.modules[name] = module

    def hide(self) -> None:
        """Leave the finders and take the modules out of Python's table."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name, module in self._modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]

    def close(self) -> None:
        """Leave the finders and forget the modules."""
        self.hide()
        self._modules.clear()

    def seal(self) -> None:
        """Let no further file join."""
        self._sealed = True

    def execute(self, path: Path) -> tuple[Workflow[BaseModel], tuple[str, ...]]:
        """Execute a workflow file, unless another file of the directory has imported it.

        Args:
            path: The file, in this directory, which is shown.

        Returns:
            What it exposes as `workflow`, and its source: the file and then, by path, what it made
            Python read from the directory.

        Raises:
            ProblemsFound: `importError`, or whatever the file is wrong with.
        """
        file, name = str(path), path.stem
        self._used = []
        self._entry = self._entry or path.name
        module = self._modules.get(name)
        if module is None:
            self._require_name(path)
            self._source(file)
            spec = self._spec(name, file, None)
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = self._modules[name] = module
            with AuthorCode(self.sources, code="importError"):
                self.exec_module(module)
            if self._refused:
                raise ProblemsFound(self._refused, code="workflowSourceChanged")
        workflow: object = getattr(module, "workflow", None)
        if not isinstance(workflow, Workflow):
            fault = "is no workflow" if workflow is not None else "is missing"
            raise found(
                "workflowMissing",
                file,
                f"`workflow` {fault}: end the file with workflow = define_workflow(...)",
            )
        helpers = sorted(used for used in self._used if used != file)
        return cast("Workflow[BaseModel]", workflow), (file, *helpers)

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
        """Execute the bytes that were hashed.

        Raises:
            ProblemsFound: `includeCycle`, files import one another.
        """
        origin = module.__file__
        assert origin is not None, module
        self._modules[module.__name__] = module
        code = compile(self.sources[origin].content, origin, "exec", dont_inherit=True)
        self._executing.append(origin)
        try:
            exec(code, module.__dict__)  # noqa: S102 - running the author's file is what loading is
        except ImportError as error:
            if error.path in self._executing:
                chain = [*self._executing[self._executing.index(error.path) :], error.path]
                raise cycle(chain) from error
            raise
        finally:
            self._executing.pop()

    def _require_name(self, path: Path) -> None:
        """Refuse a file that is not called like a workflow, or like another module."""
        name = path.stem
        if path.suffix != ".py" or not name.isidentifier():
            raise found(
                "sourceInvalid",
                str(path),
                "a workflow file is called <stem>_workflow.py, its stem of letters, digits and '_'",
            )
        if name in sys.modules or name in _SHADOWLESS:
            raise found(
                "sourceInvalid",
                str(path),
                f"a module is already called {name!r}: rename the file",
            )

    def _parent(self, fullname: str, path: Sequence[str] | None) -> str | None:
        """Return the directory in which the module would lie, when that is ours to serve."""
        if "." not in fullname:
            return None if fullname in _SHADOWLESS else self._base
        places = [] if path is None else [*path]
        if fullname.rpartition(".")[0] not in self._modules or len(places) != 1:
            return None
        return places[0]

    def _admit(self, fullname: str, file: str) -> None:
        if file in self.sources:
            return
        if self._sealed:
            message = (
                f"{file}: {fullname!r} is imported after the workflow was loaded:"
                f" import it at the top of {self._entry}"
            )
            raise LateImport(message, field=file)
        if self._is_expected:
            problem = Problem(
                "workflowSourceChanged", file, "was not imported when the workflow was resolved"
            )
            self._refused.append(problem)
            raise LateImport(f"{file}: {problem.message}", field=file)
        if len(self.sources) >= SOURCE_FILES_MAX:
            raise found(
                "sourceInvalid", file, f"a workflow imports at most {SOURCE_FILES_MAX} files"
            )

    def _source(self, path: str) -> Source:
        self._used.append(path)
        source = self.sources.get(path)
        if source is None:
            source = self.sources[path] = read_source(Path(path))
        return source

    def _spec(self, name: str, file: str, places: list[str] | None) -> ModuleSpec:
        spec = importlib.util.spec_from_file_location(
            name, file, loader=self, submodule_search_locations=places
        )
        assert spec is not None, file
        return spec


def cycle(files: Sequence[str]) -> ProblemsFound:
    """Return the error of files that include one another, with the whole chain.

    Args:
        files: From the first file on, which is also the last.
    """
    return found("includeCycle", files[0], f"a workflow includes itself: {' -> '.join(files)}")
