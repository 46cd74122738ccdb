"""A reader of patches, written from the protocol and from nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Document = dict[str, Any]

BASES: Final = {
    ("summary", ""): "",
    ("graph", ""): "",
    ("replay", "steps:reload"): "",
    ("timeline", "trace:tail"): "/tracePage",
    ("timeline", "session:tail"): "/session/eventPage",
    ("timeline", "session:reload"): "/session/eventPage",
    ("conversation", "entries:tail"): "/session/entryPage",
    ("conversation", "capture"): "/session/capture",
    ("conversation", "binding"): "/session/binding",
    ("conversation", "integrity"): "/session/integrity",
    ("inspector", "updates"): "",
    ("inspector", "settings"): "",
    ("inspector", "follow_ups"): "",
    ("inspector", "messages"): "",
    ("inspector", "aggregates:reload"): "",
}
STALE: Final = {
    "steps:reload": (("state", "steps"), ("stepStart",)),
    "aggregates:reload": (
        ("state", "outputs"),
        ("state", "results"),
        ("state", "finalOutput"),
        ("outputTotal",),
        ("resultTotal",),
    ),
    "session:reload": (("session", "eventPage", "items"),),
}
# Pages that grow at their ends.
PAGES: Final = (("tracePage",), ("session", "entryPage"), ("session", "eventPage"))
PAGE_ITEMS_MAX: Final = 256
_MISSING: Final = object()
# Objects of the view whose members are compared one by one.
_PARTS: Final = frozenset({("state",), ("session",), ("tracePage",)})


@dataclass
class Reader:
    """A view that patches are applied to.

    Attributes:
        view: The view, which is changed in place.
        stale: Paths of what has to be asked for again.
    """

    view: Document
    stale: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])

    def take(self, patch: Mapping[str, Any]) -> None:
        """Apply a whole patch; of one that leads nowhere only what people are told."""
        assert patch["runId"] == self.view["runId"]
        for name in ("display", "live", "possiblyInterrupted"):
            self.view[name] = patch[name]
        if patch["toRevision"] <= self.view["revision"]:
            return
        assert patch["fromRevision"] == self.view["revision"]
        order = [(delta["revision"], delta["index"]) for delta in patch["deltas"]]
        assert order == sorted(set(order))
        revisions = range(patch["fromRevision"] + 1, patch["toRevision"] + 1)
        assert sorted({revision for revision, _ in order}) == list(revisions)
        for delta in patch["deltas"]:
            self._delta(delta["targetType"], delta["targetKey"], delta["patch"])
        self.view["revision"] = patch["toRevision"]
        state, workflow = self.view["state"], self.view["workflow"]
        newest = [step["nodeId"] for step in self.view["graphSteps"][-1:]]
        here = state.get("currentNode", state.get("waitingOn", *newest))
        if "nodeTotal" in workflow and here not in (None, *workflow["nodes"]):
            # No patch moves the window of a definition that is not shown whole.
            self.stale.add(("workflow",))

    def _delta(self, target: str, key: str, operations: list[Document]) -> None:
        base = BASES[target, key]
        is_tail = key.endswith(":tail")
        for operation in operations:
            path = (base + operation["path"]).split("/")[1:]
            if is_tail and operation["op"] == "append" and not self._is_loaded(base, operations):
                self.stale.add(tuple(path))
                continue
            self._apply(operation, path)
            if is_tail and operation["op"] == "append":
                self._trim(base)
        self.stale.update(STALE.get(key, ()))

    def _at(self, path: list[str]) -> Any:
        found: Any = self.view
        for name in path:
            found = found[name]
        return found

    def _is_loaded(self, base: str, operations: list[Document]) -> bool:
        page = self._at(base.split("/")[1:])
        added = sum(len(each["value"]) for each in operations if each["op"] == "append")
        (total,) = (each["value"] for each in operations if each["path"] == "/total")
        return bool(page["start"] + len(page["items"]) == total - added)

    def _trim(self, base: str) -> None:
        page = self._at(base.split("/")[1:])
        over = max(0, len(page["items"]) - PAGE_ITEMS_MAX)
        page["items"] = page["items"][over:]
        page["start"] += over
        if over and base == "/session/eventPage":
            # It is the state at an earlier beginning, as its `throughSeq` tells.
            self.stale.add(("session", "replayCheckpoint"))

    def _apply(self, operation: Document, path: list[str]) -> None:
        holder, name = self._at(path[:-1]), path[-1]
        match operation["op"]:
            case "add":
                holder[name] = operation["value"]
            case "replace":
                assert name in holder, path
                holder[name] = operation["value"]
            case "remove":
                del holder[name]
            case "append":
                holder[name].extend(operation["value"])
            case other:
                raise AssertionError(other)


def comparable(reader: Reader, now: Document) -> tuple[Document, Document]:
    """Return a reader's view and the newest one, without what the reader knows to be stale."""
    return _aligned(reader.view, now, reader.stale)


def differences(view: Document, now: Document, stale: set[tuple[str, ...]]) -> list[str]:
    """Return the members by which a view differs from that of now.

    Args:
        view: The view that patches were applied to.
        now: The view of now.
        stale: Paths of what is not compared.

    Returns:
        Their paths; of a page those items are compared that both have, which is its end.
    """
    return [*_members(*_aligned(view, now, stale), ())]


def _members(here: Document, there: Document, above: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths of members that differ, as deep as both are objects of the view's own."""
    for name in sorted(here.keys() | there.keys()):
        path = (*above, name)
        left, right = here.get(name, _MISSING), there.get(name, _MISSING)
        if path in _PARTS and _MISSING not in (left, right):
            yield from _members(left, right, path)
        elif left != right:
            yield "/".join(path)


def _aligned(
    view: Document, now: Document, stale: set[tuple[str, ...]]
) -> tuple[Document, Document]:
    """Return two views without what is stale.

    Of a page both have the items that both can have; the replay state is one of the event page's
    beginning.
    """
    left, right = _own(view), _own(now)
    starts = [each["session"]["eventPage"]["start"] for each in (left, right)]
    gone = set(stale)
    if starts[0] != starts[1] or ("session", "eventPage", "items") in gone:
        gone.add(("session", "replayCheckpoint"))
    for page in PAGES:
        _align(left, right, page, is_stale=(*page, "items") in gone)
    for path in gone:
        for each in (left, right):
            _at(each, path[:-1]).pop(path[-1], None)
    return left, right


def _own(view: Document) -> Document:
    """Return a view whose members on the way to what is aligned are nobody else's."""
    own = {**view}
    for path in sorted({*_PARTS, *PAGES}, key=len):
        holder = _at(own, path[:-1])
        holder[path[-1]] = {**holder[path[-1]]}
    return own


def _align(left: Document, right: Document, page: tuple[str, ...], *, is_stale: bool) -> None:
    """Let two pages begin with the same item."""
    start = max(_at(view, page)["start"] for view in (left, right))
    for view in (left, right):
        shown = _at(view, page)
        shown["items"] = [] if is_stale else shown["items"][max(0, start - shown["start"]) :]
        shown["start"] = start


def _at(view: Document, path: tuple[str, ...]) -> Any:
    """Return what a view has in a place."""
    found: Any = view
    for name in path:
        found = found[name]
    return found
