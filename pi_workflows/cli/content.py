"""Values of run views, fetched where they are too large for the view."""

from __future__ import annotations

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.cli.connection import ask
from pi_workflows.cli.reader import Reader
from pi_workflows.protocol.artifact import Download, artifact_of
from pi_workflows.protocol.operations import Operation


def size_of(value: Json) -> int | None:
    """Return the bytes of the content that a value refers to; None when it is the value itself."""
    try:
        artifact = artifact_of(value)
    except ProtocolViolation:
        # A value that was fetched may hold anything that looks like a reference.
        return None
    return None if artifact is None else artifact.content_bytes


def whole(server: Reader, run_id: str, value: Json) -> Json:
    """Return a value of a run view as the run has it.

    Args:
        server: The connected client, or a file.
        run_id: The run whose view it stood in.
        value: The value, or a reference to its content, which is then fetched and verified.

    Raises:
        ProtocolViolation: The content is not the one that the reference names.
        NotFound: The run is gone, or names no such content any more.
        Unavailable: As `Client.request`.
    """
    download = Download(run_id, value)
    while (wanted := download.wanted) is not None:
        download.take(ask(server, Operation.VIEW_CONTENT, wanted, run_id=run_id).receipt)
    return download.value
