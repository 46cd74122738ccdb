"""Where a loaded definition comes from, as launches, validations and starts name it."""

from __future__ import annotations

from pi_workflows.authoring.loading import Loaded
from pi_workflows.authoring.modules import found
from pi_workflows.protocol.runner import Mount


def mounts_of(loaded: Loaded) -> tuple[Mount, ...]:
    """Return where a definition and each of its mounts come from, the root first."""
    return tuple(Mount(mount=each.mount, source=each.source) for each in loaded.sources)


def require_mounts(loaded: Loaded, mounts: tuple[Mount, ...]) -> None:
    """Refuse a definition that comes from elsewhere than the run's.

    Raises:
        ProblemsFound: `definitionChanged`.
    """
    if mounts != mounts_of(loaded):
        raise found("definitionChanged", "mounts", "the run was started with other sources")
