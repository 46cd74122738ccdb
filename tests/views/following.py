"""Two readers of the same patches, one of the product and one of the tests, that must agree."""

from __future__ import annotations

import copy
import json
from typing import Any, Final

from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.mirror import RunMirror
from tests.views.patching import STALE, Document, Reader, differences

_SECTIONS: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "steps": STALE["steps:reload"],
    "aggregates": STALE["aggregates:reload"],
    "trace": (("tracePage", "items"),),
    "entries": (("session", "entryPage", "items"),),
    "events": STALE["session:reload"],
    "definition": (("workflow",),),
}
_REPLAY: Final = ("session", "replayCheckpoint")


def decoded(content: bytes) -> Any:
    """Return JSON as a document."""
    return json.loads(content)


def stale_paths(mirror: RunMirror) -> set[tuple[str, ...]]:
    """Return the paths of what a mirror says is older than the rest.

    The state before the first event of a page says itself before which one it is.
    """
    stale = {path for section in mirror.stale for path in _SECTIONS[section]}
    view: Any = mirror.view
    page, state = view["session"]["eventPage"], view["session"]["replayCheckpoint"]
    if page["start"] != (0 if state is None else state["throughSeq"]):
        stale.add(_REPLAY)
    return stale


class Follower:
    """A run as two readers have it.

    Attributes:
        run_id: The run.
        reader: The one of the tests.
        mirror: The one of the product.
        frames: The patches that were taken.
    """

    def __init__(self, view: bytes) -> None:
        """Begin with a snapshot, which is a view's canonical bytes."""
        self.origin = view
        self.reader = Reader(decoded(view))
        self.run_id: str = self.reader.view["runId"]
        self.mirror = RunMirror(self.run_id)
        self.frames: list[bytes] = []
        self._tell(EventKind.RUN_SNAPSHOT, decoded(view), self.reader.view["revision"])

    @property
    def revision(self) -> int:
        """The presentation revision that both have."""
        revision = self.reader.view["revision"]
        assert self.mirror.revision == revision
        assert isinstance(revision, int)
        return revision

    @property
    def state(self) -> tuple[Document, set[tuple[str, ...]], Any, frozenset[str]]:
        """Everything that both have."""
        return self.reader.view, self.reader.stale, self.mirror.view, self.mirror.stale

    def take(self, frame: bytes) -> None:
        """Give both a patch."""
        self.frames.append(frame)
        self._hear(frame)

    def hear_again(self) -> None:
        """Give both every patch once more, in order; that must change nothing."""
        before = copy.deepcopy(self.state)
        for frame in self.frames:
            self._hear(frame)
        assert self.state == before

    def hold(self, now: Document) -> None:
        """Hold both to the view of now."""
        assert not self.mirror.is_stale
        assert differences(self.reader.view, now, self.reader.stale) == []
        view: Any = self.mirror.view
        assert differences(view, now, stale_paths(self.mirror)) == []

    def _hear(self, frame: bytes) -> None:
        self.reader.take(decoded(frame))
        patch = decoded(frame)
        self._tell(EventKind.RUN_PATCH, patch, patch["toRevision"])

    def _tell(self, kind: EventKind, payload: Any, revision: int) -> None:
        change = self.mirror.take(
            Event(
                subscription_id="subscription",
                event=kind,
                payload=payload,
                revision=revision,
                run_id=self.run_id,
            )
        )
        assert change.fault is None, change
