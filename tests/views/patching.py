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
    ("inspector", "updates"): "",
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
}
PAGE_ITEMS_MAX: Final = 256
_MISSING: Final = object()


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


def differences(view: Document, now: Document, stale: set[tuple[str, ...]]) -> list[str]:
    """Return the members by which a view differs from that of now.

    Args:
        view: The view that patches were applied to.
        now: The view of now.
        stale: Paths of what is not compared.

    Returns:
        Their paths; of the trace those items are compared that both have, which is its end.
    """
    return [*_members(view, now, stale, ())]


def _members(
    view: Document, now: Document, stale: set[tuple[str, ...]], above: tuple[str, ...]
) -> Iterator[str]:
    for name in sorted(view.keys() | now.keys()):
        path = (*above, name)
        if path in stale:
            continue
        here, there = view.get(name, _MISSING), now.get(name, _MISSING)
        if path == ("state",):
            yield from _members(here, there, stale, path)
        elif path == ("tracePage",):
            yield from _trace(here, there, stale)
        elif here != there:
            yield "/".join(path)


def _trace(here: Document, there: Document, stale: set[tuple[str, ...]]) -> Iterator[str]:
    if here["total"] != there["total"]:
        yield "tracePage/total"
    if ("tracePage", "items") in stale:
        return
    start = max(here["start"], there["start"])
    ends = [page["items"][start - page["start"] :] for page in (here, there)]
    if ends[0] != ends[1] or not ends[0]:
        yield "tracePage/items"
