"""A reader of patches, written from the protocol and from nothing else."""

from __future__ import annotations

import copy
from collections.abc import Mapping
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


@dataclass
class Reader:
    """A view that patches are applied to.

    Attributes:
        view: The view.
        stale: Paths of what has to be asked for again.
    """

    view: Document
    stale: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])

    def take(self, patch: Mapping[str, Any]) -> None:
        """Apply a whole patch."""
        assert patch["runId"] == self.view["runId"]
        assert patch["fromRevision"] == self.view["revision"]
        self.view = copy.deepcopy(self.view)
        order = [(delta["revision"], delta["index"]) for delta in patch["deltas"]]
        assert order == sorted(set(order))
        for delta in patch["deltas"]:
            self._delta(delta["targetType"], delta["targetKey"], delta["patch"])
        for name in ("display", "live", "possiblyInterrupted"):
            self.view[name] = patch[name]
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


def comparable(view: Document, stale: set[tuple[str, ...]], trace_from: int) -> Document:
    """Return a view without what is stale, and its trace from a number on."""
    shown = copy.deepcopy(view)
    for path in stale:
        holder = shown
        for name in path[:-1]:
            holder = holder[name]
        holder.pop(path[-1], None)
    page = shown["tracePage"]
    skipped = max(0, trace_from - page["start"])
    page["items"] = page["items"][skipped:]
    page["start"] = max(trace_from, page["start"])
    return shown
