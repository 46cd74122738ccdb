"""Loading a workflow file, and the files of the workflows that it includes by reference.

Each file is read once and hashed, and exactly those bytes are executed; `modules` does that for one
directory. References are resolved once the including file has been executed, from the outside in,
so that each mount's files are known by its path.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel

from pi_workflows.authoring.builtins import builtin_name
from pi_workflows.authoring.composition import Include
from pi_workflows.authoring.define import composed_problems
from pi_workflows.authoring.failures import bounded
from pi_workflows.authoring.modules import Directory, Source, cycle, found, read_source, verified
from pi_workflows.authoring.workflow import Workflow
from pi_workflows.base.errors import Problem, ProblemsFound
from pi_workflows.base.limits import SOURCE_FILES_MAX
from pi_workflows.definition.paths import ROOT, joined
from pi_workflows.definition.source import (
    MountSource,
    SourceFile,
    WorkflowSource,
    files_of,
    mount_revision,
)

Find: TypeAlias = Callable[[str, Path], Path]
"""Returns the file that a reference means, which stands in a file of a directory.

Raises ProblemsFound when there is none.
"""


class Loaded:
    """A loaded workflow and the identity of its sources.

    Attributes:
        workflow: The definition, with all that it includes.
        source_files: The workflow file first, then its helper modules by path; then the same of
            each mount, by mount.
        sources: Where the definition and each of its mounts come from, the root first.
    """

    def __init__(self, workflow: Workflow[BaseModel], loading: _Loading) -> None:
        self.workflow = workflow
        self.source_files = loading.source_files()
        self.sources = tuple(
            MountSource(mount=mount, source=_source(files_of(self.source_files, mount)))
            for mount in dict.fromkeys(file.mount for file in self.source_files)
        )
        self._loading = loading

    @property
    def paths(self) -> frozenset[str]:
        """The paths of the source files: how an author's lines are recognized in a traceback."""
        return frozenset(file.path for file in self.source_files)

    @property
    def source(self) -> WorkflowSource:
        """The identity of the workflow's own source."""
        return self.sources[0].source

    @property
    def source_revision(self) -> str:
        """The hex SHA-256 over the list of the workflow's own files."""
        return self.source.revision

    def is_unchanged(self) -> bool:
        """Return whether every reference and source file still is what was loaded."""
        return self._loading.means_the_same() and not any(True for _ in changed(self.source_files))

    def close(self) -> None:
        """Forget the loaded modules, so that the file can be loaded again in this process."""
        self._loading.close()


def load(
    path: Path | str,
    expected: Sequence[SourceFile] | None = None,
    definition_digest: str | None = None,
    *,
    find: Find | None = None,
) -> Loaded:
    """Load a workflow file in this process, which executes it.

    Args:
        path: The file; symbolic links are followed once, at the start.
        expected: The files that were hashed when the workflow was resolved, the workflow file
            first. Every one is verified before anything is executed, no other file is imported from
            their directories, and each reference means the file of its mount.
        definition_digest: The digest that the definition must have, checked after loading.
        find: What references to other workflows mean while nothing is expected; by default only a
            path means anything.

    Returns:
        The workflow. Until `close`, its helper modules stay importable and any other module of its
        directories is refused with `LateImport`.

    Raises:
        ProblemsFound: Nothing stays loaded. `workflowSourceChanged`: a file is not as expected.
            `definitionChanged`: the digest is another. `importError`: executing a file failed.
            `definitionInvalid`: the definition has mistakes, all in `problems`. `includeCycle`:
            workflows include one another. `sourceInvalid`: a file cannot be read or named so.
    """
    root = Path(os.path.realpath(path))
    loading = _Loading(root, expected, find or _by_path)
    with ExitStack() as undo:
        undo.callback(loading.close)
        workflow = loading.load()
        if definition_digest is not None and workflow.digest != definition_digest:
            raise found(
                "definitionChanged",
                str(root),
                "the definition is another than the run was started with",
            )
        loaded = Loaded(workflow, loading)
        undo.pop_all()
    return loaded


def changed(files: Iterable[SourceFile]) -> Iterator[Problem]:
    """Yield a problem (`workflowSourceChanged`) for each file whose bytes are not those hashed."""
    for file in files:
        source = verified(file)
        if isinstance(source, Problem):
            yield source


class _Loading:
    """One workflow's files on their way to a definition."""

    def __init__(self, root: Path, expected: Sequence[SourceFile] | None, find: Find) -> None:
        self._root = root
        self._find = find
        self._expected = None if expected is None else tuple(expected)
        self._verified: dict[str, Source] = {}
        self._directories: dict[str, Directory] = {}
        self._shown: Directory | None = None
        self._files: dict[str, tuple[str, ...]] = {}
        self._workflows: dict[str, tuple[Workflow[BaseModel], tuple[str, ...]]] = {}
        self._meant: list[tuple[str, Path, Path]] = []

    def load(self) -> Workflow[BaseModel]:
        """Execute the workflow file and those of its references; no further file may join then."""
        if self._expected is not None:
            self._verify(self._expected)
        workflow, self._files[ROOT] = self._execute(self._root)
        linked = self._linked(workflow, ROOT, (str(self._root),))
        if linked is not workflow and (problems := composed_problems(linked)):
            raise ProblemsFound(bounded(problems))
        if self._expected is not None and {*self._files} != {each.mount for each in self._expected}:
            raise found("definitionChanged", str(self._root), "it includes other workflows")
        for directory in self._directories.values():
            if directory is not self._shown:
                directory.show()
            directory.seal()
        return linked

    def source_files(self) -> tuple[SourceFile, ...]:
        """Return the files of each mount, the root's first."""
        if self._expected is not None:
            return self._expected
        listed = tuple(
            SourceFile(mount=mount, path=path, sha256=self._read(path).sha256)
            for mount in sorted(self._files)
            for path in self._files[mount]
        )
        if len(listed) > SOURCE_FILES_MAX:
            raise found(
                "sourceInvalid",
                str(self._root),
                f"it and what it includes have {len(listed):,} files; at most {SOURCE_FILES_MAX}",
            )
        return listed

    def means_the_same(self) -> bool:
        """Return whether each reference still means the file that was loaded for it."""
        try:
            return all(
                _real(self._find(reference, base)) == path for reference, base, path in self._meant
            )
        except ProblemsFound:
            return False

    def close(self) -> None:
        """Forget all modules."""
        for directory in self._directories.values():
            directory.close()

    def _verify(self, expected: tuple[SourceFile, ...]) -> None:
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
            source = self._verified.get(file.path) or verified(file)
            if isinstance(source, Source) and source.sha256 == file.sha256:
                self._verified[file.path] = source
            else:
                problems.extend([source] if isinstance(source, Problem) else changed([file]))
        if problems:
            raise ProblemsFound(problems, code="workflowSourceChanged")

    def _execute(self, path: Path) -> tuple[Workflow[BaseModel], tuple[str, ...]]:
        """Return what a file exposes, and its source; a file is executed once."""
        known = self._workflows.get(str(path))
        if known is not None:
            return known
        base = str(path.parent)
        directory = self._directories.get(base)
        if directory is None:
            directory = self._directories[base] = Directory(
                base, None if self._expected is None else self._verified
            )
        if directory is not self._shown:
            if self._shown is not None:
                self._shown.hide()
            directory.show()
            self._shown = directory
        executed = self._workflows[str(path)] = directory.execute(path)
        return executed

    def _linked(
        self, workflow: Workflow[BaseModel], mount: str, chain: tuple[str, ...]
    ) -> Workflow[BaseModel]:
        """Return a workflow with everything that it includes, at any depth, in its place."""
        found_here: dict[str, Workflow[BaseModel]] = {}
        for name, include in workflow.includes.items():
            place = joined(mount, name)
            if include.reference is None:
                child = include.workflow
                assert child is not None, place
                self._files[place] = (child.file,)
                through = (*chain, child.file)
            else:
                path = self._file(include, place, workflow)
                if str(path) in chain:
                    raise cycle([*chain[chain.index(str(path)) :], str(path)])
                child, self._files[place] = self._execute(path)
                through = (*chain, str(path))
            linked = self._linked(child, place, through)
            if linked is not include.workflow:
                found_here[name] = linked
        return workflow.with_included(found_here) if found_here else workflow

    def _file(self, include: Include, place: str, includer: Workflow[BaseModel]) -> Path:
        """Return the file that a reference means."""
        assert include.reference is not None, place
        if self._expected is not None:
            files = files_of(self._expected, place)
            if not files:
                raise found("definitionChanged", str(self._root), f"{place} is a new mount")
            return Path(files[0].path)
        base = Path(includer.file).parent
        path = _real(self._find(include.reference, base))
        self._meant.append((include.reference, base, path))
        return path

    def _read(self, path: str) -> Source:
        """Return a source file, one from outside of the loaded directories too."""
        for directory in self._directories.values():
            if path in directory.sources:
                return directory.sources[path]
        return self._verified.setdefault(path, read_source(Path(path)))


def _source(files: Sequence[SourceFile]) -> WorkflowSource:
    """Return the identity of a mount's source, as a run stores it."""
    builtin = builtin_name(Path(files[0].path))
    kind: Literal["file", "builtin"] = "file" if builtin is None else "builtin"
    return WorkflowSource(
        type=kind, ref=builtin or files[0].path, revision=mount_revision(kind, files)
    )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _by_path(reference: str, base: Path) -> Path:
    """Return the file of a path, when no names are known."""
    if "/" in reference or reference.endswith(".py"):
        return base / Path(reference).expanduser()
    raise found("workflowUnknown", reference, "no directory of workflows is searched here")
