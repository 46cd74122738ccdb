"""Deltas in their places of a run view: where each target lies, and what it does to the windows.

The client protocol, "Deltas". A target may change its own members only, so that no patch reaches
what names the run or what people are told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.base.limits import PAGE_ITEMS_MAX
from pi_workflows.protocol.patch import apply, pointer_tokens
from pi_workflows.protocol.run_patch import Delta, PatchOperation

Section: TypeAlias = Literal["steps", "aggregates", "trace", "entries", "events", "definition"]
"""A part of a run view that may be older than the rest.

`steps`: `state.steps` and `stepStart`; `aggregates`: `outputs`, `results` and `finalOutput` of the
state, `outputTotal`, `resultTotal`; `trace`: `tracePage`; `entries`, `events`: the pages of the
session; `definition`: `workflow`, where it is a window that lacks the node that the run is at, or
was at last.
"""

RunViewDocument: TypeAlias = dict[str, Json]
"""A run view as JSON. Views share their parts: whoever has one must not change it."""


@dataclass(frozen=True, slots=True)
class _Target:
    """What deltas of one target are allowed to do.

    Attributes:
        base: Where its paths begin.
        members: The members of the base that it may change; None: everything, also as a whole.
        section: The section that is older once the delta is applied, or whose tail it is.
        is_tail: It appends to a window at the end of a sequence.
    """

    base: str = ""
    members: frozenset[str] | None = frozenset()
    section: Section | None = None
    is_tail: bool = False


def _members(*names: str) -> _Target:
    """Return a target at the root of the view."""
    return _Target(members=frozenset(names))


_TARGETS: Final[Mapping[str, _Target]] = {
    "summary/": _members("queue", "runRevision", "manifest"),
    "graph/": _members(
        "state",
        "graphSteps",
        "graphStepStart",
        "graphStepTotal",
        "takenTransitions",
        "takenTransitionStart",
        "takenTransitionTotal",
        "graphCursor",
    ),
    "replay/steps:reload": _Target(members=frozenset({"stepTotal"}), section="steps"),
    "timeline/trace:tail": _Target("/tracePage", section="trace", is_tail=True),
    "timeline/session:tail": _Target("/session/eventPage", section="events", is_tail=True),
    "timeline/session:reload": _Target(
        "/session/eventPage", members=frozenset({"total"}), section="events"
    ),
    "conversation/entries:tail": _Target("/session/entryPage", section="entries", is_tail=True),
    "conversation/capture": _Target("/session/capture", members=None),
    "conversation/binding": _Target("/session/binding", members=None),
    "conversation/integrity": _Target("/session/integrity", members=None),
    "inspector/settings": _members("settingsScopes", "settingsStart", "settingsTotal"),
    "inspector/follow_ups": _members("followUpQueue", "followUpStart", "followUpTotal"),
    "inspector/updates": _members("updates", "updateStart", "updateTotal"),
    "inspector/messages": _members(
        "workflowMessages", "workflowMessageStart", "workflowMessageTotal"
    ),
    "inspector/aggregates:reload": _Target(section="aggregates"),
}


def apply_delta(
    view: RunViewDocument, delta: Delta, stale: frozenset[Section]
) -> tuple[RunViewDocument, frozenset[Section]]:
    """Return a run view with a delta, and which of its sections are older than it.

    Args:
        view: The view; it is not changed.
        delta: What changed.
        stale: The sections that are older already.

    Raises:
        ProtocolViolation: `targetUnknown`, `pathForbidden`, `pageInvalid`, `tailInvalid`, or one
            of `patch.apply`.
    """
    target = _TARGETS.get(delta.target)
    if target is None:
        raise ProtocolViolation("a delta has an unknown target", code="targetUnknown")
    if target.is_tail:
        return _with_tail(view, target, delta, stale)
    for operation in delta.patch:
        _check_place(target, operation)
    changed = apply(view, delta.patch, base=target.base)
    assert isinstance(changed, dict), "no target replaces the root"
    return changed, stale if target.section is None else _with(stale, target.section)


def _check_place(target: _Target, operation: PatchOperation) -> None:
    """Refuse a change outside the members of its target."""
    tokens = pointer_tokens(operation.path)
    if target.members is None:
        if not tokens and operation.op == "remove":
            raise _forbidden()
    elif not tokens or tokens[0] not in target.members:
        raise _forbidden()


def _with_tail(
    view: RunViewDocument, target: _Target, delta: Delta, stale: frozenset[Section]
) -> tuple[RunViewDocument, frozenset[Section]]:
    """Return a view with a tail.

    The items go to a window that ends where they begin, which then loses its own head; any other
    window gets the total only, and is older from now on.
    """
    assert target.section is not None, "a tail is one of a section"
    start, total, items = _window(_at(view, target.base))
    is_at_end = start + len(items) == total and target.section not in stale
    for operation in delta.patch:
        if (operation.op, operation.path) == ("append", "/items"):
            if is_at_end:
                assert isinstance(operation.value, list), "the model took an array"
                items = [*items, *operation.value]
        elif (operation.op, operation.path) == ("replace", "/total"):
            total = _count(operation.value)
        else:
            raise ProtocolViolation("a tail does something else than to append", code="tailInvalid")
    surplus = max(0, len(items) - PAGE_ITEMS_MAX)
    page: list[tuple[str, Json]] = [("items", items), ("total", total)]
    if surplus:
        page = [("items", items[surplus:]), ("start", start + surplus), ("total", total)]
    operations = [PatchOperation(op="add", path=f"/{name}", value=new) for name, new in page]
    changed = apply(view, operations, base=target.base)
    if surplus and target.section == "events":
        # It was the state just before the old head; the one before the new head is not known here.
        forgotten = PatchOperation(op="add", path="/replayCheckpoint", value=None)
        changed = apply(changed, [forgotten], base="/session")
    assert isinstance(changed, dict), "a tail is below the root"
    if is_at_end and start + len(items) == total:
        return changed, stale
    return changed, _with(stale, target.section)


def with_definition(view: RunViewDocument, stale: frozenset[Section]) -> frozenset[Section]:
    """Return the sections that are older, with or without the definition.

    No patch moves the window of a large definition, which stood around the node that the run was at
    in the snapshot.

    Args:
        view: The view.
        stale: The sections that are older.
    """
    workflow, node = view.get("workflow"), _here(view)
    if not isinstance(workflow, dict) or "nodeTotal" not in workflow:
        return stale
    nodes = workflow.get("nodes")
    is_shown = node is None or (isinstance(nodes, dict) and node in nodes)
    return stale - {"definition"} if is_shown else _with(stale, "definition")


def _here(view: RunViewDocument) -> Json:
    """Return the node that a run is at, else the one of its newest step; None before the first."""
    state, steps = view.get("state"), view.get("graphSteps")
    here = state.get("currentNode", state.get("waitingOn")) if isinstance(state, dict) else None
    newest = steps[-1] if here is None and isinstance(steps, list) and steps else None
    return newest.get("nodeId") if isinstance(newest, dict) else here


def _with(stale: frozenset[Section], section: Section) -> frozenset[Section]:
    """Return the sections that are older, with one more."""
    added: frozenset[Section] = frozenset((section,))
    return stale | added


def _at(view: RunViewDocument, base: str) -> Json:
    """Return what a view has at a pointer of objects."""
    found: Json = view
    for token in pointer_tokens(base):
        if not isinstance(found, dict) or token not in found:
            raise ProtocolViolation("the view has no such page", code="pageInvalid")
        found = found[token]
    return found


def _window(page: Json) -> tuple[int, int, list[Json]]:
    """Return start, total and items of a page in a view."""
    if not isinstance(page, dict) or not isinstance(items := page.get("items"), list):
        raise ProtocolViolation("a page of the view has no items", code="pageInvalid")
    return _count(page.get("start")), _count(page.get("total")), items


def _count(value: Json) -> int:
    """Return a number of items."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ProtocolViolation("a page counts with something else", code="pageInvalid")
    return value


def _forbidden() -> ProtocolViolation:
    """Return the violation of a change that is not the target's to make."""
    return ProtocolViolation("a delta changes what its target does not hold", code="pathForbidden")
