"""Which files a definition came from: their digests, and the one revision over them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from pi_workflows.base import canonical
from pi_workflows.base.limits import PATH_BYTES_MAX
from pi_workflows.definition.document import Document

Sha256Hex = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class SourceFile(Document):
    """One file that a definition was loaded from.

    Attributes:
        mount: The mount whose workflow it belongs to; empty for the root. The first file of a mount
            is its workflow file, the others are the helper modules that loading it imported from
            its directory, by path.
        path: Absolute, without symbolic links.
        sha256: The hex SHA-256 of its bytes.
    """

    mount: str
    path: Annotated[str, Field(pattern=r"^/", max_length=PATH_BYTES_MAX)]
    sha256: Sha256Hex


class WorkflowSource(Document):
    """The identity of a definition's source, as a run's sources store it.

    Attributes:
        type: `file`, or `builtin` for one that the package ships.
        ref: The workflow file's absolute path, or the built-in's name.
        revision: The hex SHA-256 over the list of its files.
    """

    type: Literal["file", "builtin"]
    ref: str
    revision: Sha256Hex


class MountSource(Document):
    """Where one workflow of a composition comes from.

    Attributes:
        mount: Its mount; empty for the root.
        source: Its source.
    """

    mount: str
    source: WorkflowSource


def files_of(files: Iterable[SourceFile], mount: str) -> tuple[SourceFile, ...]:
    """Return the files of one mount, its workflow file first."""
    return tuple(file for file in files if file.mount == mount)


def mount_revision(kind: Literal["file", "builtin"], files: Sequence[SourceFile]) -> str:
    """Return the revision of one mount's source: a built-in's is the digest of its file."""
    return files[0].sha256 if kind == "builtin" else source_revision(files)


def source_revision(files: Iterable[SourceFile]) -> str:
    """Return the hex SHA-256 over the canonical JSON of the files, in their order."""
    listed: list[canonical.Json] = [file.model_dump(mode="json", by_alias=True) for file in files]
    return hashlib.sha256(canonical.encode(listed, field="sourceFiles")).hexdigest()
