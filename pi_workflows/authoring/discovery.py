"""Where workflow files are looked for, and which file a name means (the engine contract, 1.1)."""

from __future__ import annotations

import ast
import difflib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from pi_workflows.authoring.builtins import BUILTINS, FILE_SUFFIX, HIDDEN, PREFIX, workflow_name
from pi_workflows.authoring.modules import found
from pi_workflows.base.limits import LISTED_FILES_MAX, SOURCE_BYTES_MAX, SUMMARY_CHARS_MAX
from pi_workflows.definition.paths import RESERVED_WORKFLOW_NAMES, is_workflow_name

Origin: TypeAlias = Literal["project", "user", "builtin"]


@dataclass(frozen=True, slots=True)
class Listed:
    """One workflow file that discovery found.

    Attributes:
        name: The name that it answers to: its stem, `_` written `-`.
        source: Whose directory it lies in.
        path: The file.
        summary: The first line of its docstring; empty without one.
        shadowed_by: The file that answers to the name instead.
        error: Why the file cannot be started by its name.
    """

    name: str
    source: Origin
    path: str
    summary: str
    shadowed_by: str | None = None
    error: str | None = None


def directories(project: Path, definitions: Path | None) -> tuple[tuple[Origin, Path], ...]:
    """Return the directories that are searched, the first one first.

    Args:
        project: The project's directory.
        definitions: The user's own directory, in the state directory.
    """
    searched: list[tuple[Origin, Path]] = [("project", project / ".pi" / "workflows")]
    if definitions is not None:
        searched.append(("user", definitions))
    return (*searched, ("builtin", BUILTINS))


def listed(searched: Iterable[tuple[Origin, Path]]) -> list[Listed]:
    """List the workflow files of the directories; no file is executed.

    Args:
        searched: The directories, the first one first. A missing one holds nothing.

    Returns:
        Every regular file `<stem>_workflow.py` that lies directly in one, by directory and file
        name. Of one name the first file answers to it; two files that give one name in one
        directory both carry an error.

    Raises:
        ProblemsFound: A directory cannot be read, or holds too many files (`sourceInvalid`).
    """
    return [item for item in _all(searched) if item.source != "builtin" or item.name not in HIDDEN]


def _all(searched: Iterable[tuple[Origin, Path]]) -> list[Listed]:
    """List the workflow files with the hidden ones."""
    items: list[Listed] = []
    winners: dict[str, str] = {}
    for source, directory in searched:
        here = [_examined(source, path) for path in _files(directory)]
        for item in here:
            twins = [other for other in here if other.name == item.name and other is not item]
            if twins:
                message = f"{Path(twins[0].path).name} gives the same name: rename one of them"
                items.append(replace(item, error=message))
            elif item.name in winners:
                items.append(replace(item, shadowed_by=winners[item.name]))
            else:
                items.append(item)
        winners = {item.name: item.path for item in here} | winners
    return items


def find(target: str, project: Path, definitions: Path | None) -> Path:
    """Return the file that a target means.

    Args:
        target: A workflow's name, or the path of its file, relative to the project.
        project: The project's directory.
        definitions: The user's own directory.

    Returns:
        The file's path.

    Raises:
        ProblemsFound: There is no such workflow (`workflowUnknown`); the problem lists near names.
            Or the file of that name carries an error (`sourceInvalid`).
    """
    path = project / Path(target).expanduser()
    if "/" in target or target.endswith(".py"):
        # Not the path's own method, which raises for a name that is too long.
        if os.path.isfile(path):  # noqa: PTH113
            return path
        missing = "there is no such file" if target == str(path) else f"there is no file {path}"
        raise found("workflowUnknown", target, _no_workflow(path) or missing)
    if target.startswith(PREFIX):
        return _builtin(target.removeprefix(PREFIX))
    items = _all(directories(project, definitions))
    for item in items:
        if item.name == target and item.shadowed_by is None:
            if item.error is not None:
                raise found("sourceInvalid", item.path, item.error)
            return Path(item.path)
    if (why := _no_workflow(path)) is not None:
        raise found("workflowUnknown", target, why)
    names = sorted({item.name for item in items if item.error is None})
    near = difflib.get_close_matches(target, names, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"give a path, such as ./{target}{FILE_SUFFIX}"
    places = " or ".join(
        str(place) for kind, place in directories(project, definitions) if kind != "builtin"
    )
    raise found("workflowUnknown", target, f"there is no workflow of this name in {places}: {hint}")


def included(reference: str, base: Path, project: Path, definitions: Path | None) -> Path:
    """Return the file that a workflow's reference to another one means.

    Args:
        reference: A name, `builtin:` and a name, or a path relative to the including file.
        base: The directory of the including file.
        project: The project's directory.
        definitions: The user's own directory.

    Returns:
        The file's path.

    Raises:
        As `find`.
    """
    is_path = "/" in reference or reference.endswith(".py")
    target = str(base / Path(reference).expanduser()) if is_path else reference
    return find(target, project, definitions)


def _builtin(name: str) -> Path:
    """Return the file of a workflow that the package ships, a hidden one too."""
    known = {workflow_name(path): path for path in _files(BUILTINS)}
    if name in known:
        return known[name]
    shown = ", ".join(sorted(known.keys() - HIDDEN)) or "none"
    raise found("workflowUnknown", name, f"there is no built-in workflow of this name: {shown}")


def _no_workflow(path: Path) -> str | None:
    """Say why something that is there is no workflow's file; None when nothing is there."""
    if os.path.isdir(path):  # noqa: PTH112 - as in `find`
        return "is a directory: give the path of a workflow's file"
    if os.path.isfile(path):  # noqa: PTH113
        return f"is no workflow: the name of its file must end in {FILE_SUFFIX}"
    return None


def _files(directory: Path) -> Iterator[Path]:
    try:
        with os.scandir(directory) as entries:
            names = [
                entry.name
                for entry in entries
                if entry.name.endswith(FILE_SUFFIX) and entry.is_file(follow_symlinks=False)
            ]
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise found("sourceInvalid", str(directory), f"cannot be read: {error.strerror}") from None
    if len(names) > LISTED_FILES_MAX:
        raise found(
            "sourceInvalid",
            str(directory),
            f"holds {len(names):,} workflow files; at most {LISTED_FILES_MAX:,}",
        )
    for name in sorted(names):
        yield directory / name


def _examined(source: Origin, path: Path) -> Listed:
    """Return what can be said about a file without executing it."""
    name = workflow_name(path)
    item = Listed(name=name, source=source, path=str(path), summary="")
    if not is_workflow_name(name) or not path.stem.isidentifier():
        message = f"the file name gives {name!r}: use lower-case letters, digits and '_'"
        return replace(item, error=message)
    if name in RESERVED_WORKFLOW_NAMES:
        return replace(item, error=f"{name!r} is a command's name: rename the file")
    try:
        with path.open("rb") as file:
            tree = ast.parse(file.read(SOURCE_BYTES_MAX + 1), str(path))
    except OSError as error:
        return replace(item, error=f"cannot be read: {error.strerror}")
    except SyntaxError as error:
        return replace(item, error=f"line {error.lineno or 1}: SyntaxError: {error.msg}")
    except ValueError as error:
        return replace(item, error=f"cannot be parsed: {error}")
    docstring = (ast.get_docstring(tree) or "").strip()
    return replace(item, summary=docstring.partition("\n")[0][:SUMMARY_CHARS_MAX])
