"""What scripted servers tell in tests of feeds, whatever client listens."""

from __future__ import annotations

import base64
import hashlib
from typing import Any, Final

from pi_workflows.base.canonical import Json
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.views import ContentChunk, RunListPage
from tests.client.peer import line, response
from tests.protocol.run_news import delta, patch, snapshot, unavailable

CONTENT: Final = b'["a","b"]'
_DIGEST: Final = hashlib.sha256(CONTENT).hexdigest()
_PATH: Final = f"artifacts/sha256/{_DIGEST}.json"
REFERENCE: Final[dict[str, Json]] = {
    "$artifact": {
        "path": _PATH,
        "mediaType": "application/json",
        "bytes": len(CONTENT),
        "sha256": _DIGEST,
        "opaque": True,
    }
}


def told(request: dict[str, Any], event: Event) -> bytes:
    """Return an event of the subscription that a request begins."""
    return line({**event.document(), "subscriptionId": request["payload"]["subscriptionId"]})


def begun(request: dict[str, Any], revision: int) -> bytes:
    """Accept a watch and send the run as it is."""
    return response(request, receipt={"subscribed": True}) + told(request, snapshot(revision))


def small(request: dict[str, Any], revision: int) -> bytes:
    """Send a patch to a revision from the one before."""
    change = delta(revision, "summary/", ("add", "/runRevision", revision))
    return told(request, patch(revision - 1, revision, change))


def removed(request: dict[str, Any]) -> bytes:
    """Say that the run is gone."""
    return told(request, unavailable("run_removed"))


def _page(start: int, *items: Json) -> dict[str, Json]:
    """Return a page of a list of three runs."""
    return RunListPage(revision="a", start=start, total=3, items=items).document()


def listed(request: dict[str, Any]) -> bytes:
    """Accept a watch of the list and send its first page."""
    event = Event(subscription_id="x", event=EventKind.RUNS, payload=_page(0, "one"), revision=1)
    return response(request, receipt={"subscribed": True}) + told(request, event)


def more(request: dict[str, Any]) -> bytes:
    """Answer with the page that was asked for."""
    start: int = request["payload"]["cursor"]
    return response(request, receipt=_page(start, ("one", "two", "three")[start]))


def chunk(request: dict[str, Any]) -> bytes:
    """Answer with the part that was asked for: five bytes."""
    offset = request["payload"]["offset"]
    piece = CONTENT[offset : offset + 5]
    part = ContentChunk(
        run_id=request["runId"],
        path=_PATH,
        media_type="application/json",
        content_bytes=len(CONTENT),
        sha256=_DIGEST,
        offset=offset,
        next_offset=offset + len(piece),
        complete=offset + len(piece) == len(CONTENT),
        data=base64.b64encode(piece).decode(),
    )
    return response(request, receipt=part.document())
