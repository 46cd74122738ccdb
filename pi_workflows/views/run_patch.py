"""`pi-workflows.run-patch.v1`: what changed in a run's view since a revision, ready to be sent.

The client protocol, section 7. Stored patches name what they change; here the names are filled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import FRAME_DEPTH_MAX, PATCH_BYTES_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.views.capture import (
    Capture,
    binding_document,
    capture_document,
    entry_items,
    event_items,
    integrity_document,
    newest_capture,
)
from pi_workflows.views.facts import ProcessFacts, RunFacts, run_facts
from pi_workflows.views.follow_ups import follow_ups_page
from pi_workflows.views.graph import Graph, live_graph
from pi_workflows.views.heads import Head, node_heads, step_total
from pi_workflows.views.messages import messages_page
from pi_workflows.views.named import Added, Member, Newest, Plain, Range, Total, operations, strange
from pi_workflows.views.page import Page
from pi_workflows.views.pages import trace_items, updates_page
from pi_workflows.views.run_view import process_members, state_members
from pi_workflows.views.settings import settings_page

SQL: Final = load(__package__, "run_patch.sql")


class _Row(NamedTuple):
    revision: int
    delta_index: int
    target_type: str
    target_key: str
    patch: bytes


@dataclass(frozen=True, slots=True)
class RunPatch:
    """A patch, encoded once for everybody who gets it.

    Attributes:
        run_id: The run.
        from_revision: The presentation revision that it applies to.
        to_revision: The one that it leads to; the same when only a process fact changed.
        content: The canonical bytes of the document.
    """

    run_id: str
    from_revision: int
    to_revision: int
    content: bytes

    @property
    def document(self) -> Json:
        """The document, ready to stand in a frame."""
        return canonical.fragment(self.content)


def run_patch(
    read: Read, run_id: str, from_revision: int, process: ProcessFacts
) -> RunPatch | None:
    """Return what changed in a run's view since a revision.

    Args:
        read: One consistent read; everything comes from it.
        run_id: The run.
        from_revision: The presentation revision that the reader has.
        process: What lives now.

    Returns:
        The patch to the revision of now; None when a snapshot is needed: the reader's revision is
        0, not retained any more or not reached yet, a patch since then is missing, or they are over
        256 KiB together.

    Raises:
        NotFound: There is no such run.
        Corrupt: A stored patch cannot be read.
    """
    facts = run_facts(read, run_id)
    if not max(1, facts.retained_from_revision - 1) <= from_revision <= facts.revision:
        return None
    known = read.one(_Known, SQL["known"], run_id=run_id, after=from_revision)
    assert known is not None, "an aggregate without a row"
    is_whole = known.revisions == facts.revision - from_revision
    if not is_whole or known.patch_bytes > PATCH_BYTES_MAX:
        return None
    try:
        deltas = _deltas(read, facts, from_revision)
    except _TooLargeError:
        return None
    document: dict[str, Json] = {
        "schema": "pi-workflows.run-patch.v1",
        "runId": run_id,
        "fromRevision": from_revision,
        "toRevision": facts.revision,
        **process_members(read, facts, process),
        "deltas": deltas,
    }
    content = canonical.encode(document, depth_max=FRAME_DEPTH_MAX)
    if len(content) > PATCH_BYTES_MAX:
        return None
    return RunPatch(run_id, from_revision, facts.revision, content)


class _TooLargeError(Exception):
    """The items that were added are more than a patch may have; no more of them are read."""


class _Known(NamedTuple):
    revisions: int
    patch_bytes: int


def _deltas(read: Read, facts: RunFacts, from_revision: int) -> list[Json]:
    """Return the stored patches after a revision, in order, filled."""
    rows = read.all(_Row, SQL["deltas"], run_id=facts.run_id, after=from_revision)
    filling = _Filling(read, facts)
    # A member is filled as it is at the end: only the last patch that names it shows it. The newest
    # events of the last patch are those at the end of the trace, of the one before those before.
    found = [_delta(row, filling) for row in reversed(rows)]
    found.reverse()
    return found


def _delta(row: _Row, filling: _Filling) -> Json:
    """Return one patch as a frame has it."""
    return {
        "revision": row.revision,
        "index": row.delta_index,
        "targetType": row.target_type,
        "targetKey": row.target_key,
        "patch": list(filling.filled(row.patch)),
    }


class _Filling:
    """Puts members and items of one run's view in the place of their names."""

    def __init__(self, read: Read, facts: RunFacts) -> None:
        self._read = read
        self._facts = facts
        self._shown: set[str] = set()
        self._bytes_left = PATCH_BYTES_MAX
        self._trace_total = facts.run_revision
        self._trace_left = facts.run_revision

    def filled(self, patch: bytes) -> Iterator[Json]:
        """Yield the operations of a stored patch, without members that a later patch shows.

        Raises:
            Corrupt: A name is not one of ours.
        """
        for operation in operations(patch):
            match operation:
                case Member(pointer, path):
                    if pointer not in self._shown:
                        self._shown.add(pointer)
                        yield from self._member(pointer, path)
                case Added(members, items):
                    yield {**members, "value": self._items(items)}
                case Newest(members, count):
                    yield {**members, "value": self._newest(count)}
                case Total(members):
                    yield {**members, "value": self._trace_total}
                case Plain(content):
                    yield canonical.fragment(content)

    def _member(self, pointer: str, path: Json) -> Iterator[Json]:
        """Yield what gives a member of the view, at a path of its target, its value.

        Of one that may be absent nobody but the reader knows whether it has it: it is set first.
        """
        if pointer in _MEMBERS:
            yield {"op": "replace", "path": path, "value": _MEMBERS[pointer](self)}
        elif pointer.startswith(_STATE):
            value = self._state.get(pointer.removeprefix(_STATE))
            yield {"op": "add", "path": path, "value": value}
            if value is None:
                yield {"op": "remove", "path": path}
        else:
            raise strange()

    def _items(self, items: Range) -> Json:
        """Return what a page got."""
        run_id, (page, after, through) = self._facts.run_id, items
        match page:
            case "entries":
                return self._fitting(entry_items(self._read, run_id, after, through))
            case "session_events":
                return self._fitting(event_items(self._read, run_id, after, through))

    def _newest(self, count: int) -> Json:
        """Return the last events of the trace that no later patch has shown."""
        self._trace_total = self._trace_left
        self._trace_left -= count
        return self._fitting(
            trace_items(self._read, self._facts, self._trace_left, self._trace_total)
        )

    def _fitting(self, items: list[Json]) -> list[Json]:
        """Return items, encoded; stop where they are too many for a patch."""
        contents = canonical.encode_each(items, depth_max=FRAME_DEPTH_MAX)
        self._bytes_left -= sum(map(len, contents))
        if self._bytes_left < 0:
            raise _TooLargeError
        return [canonical.fragment(content) for content in contents]

    @cached_property
    def _state(self) -> dict[str, Json]:
        return state_members(self._read, self._facts)

    @cached_property
    def _heads(self) -> list[Head]:
        snapshot = self._read.document(Snapshot.parse, self._facts.definition_hash)
        return node_heads(self._read, self._facts.run_id, snapshot.nodes)

    @property
    def facts(self) -> RunFacts:
        """The run as it stands."""
        return self._facts

    @cached_property
    def step_total(self) -> int:
        """How many steps it has."""
        return step_total(self._read, self._facts.run_id)

    @cached_property
    def graph(self) -> Graph:
        """Where it has been."""
        return live_graph(self._read, self._facts.run_id, self._heads, self.step_total)

    @cached_property
    def capture(self) -> Capture | None:
        """Its newest capture."""
        return newest_capture(self._read, self._facts.run_id)

    @property
    def binding_document(self) -> Json:
        """What that is of."""
        return binding_document(self._read, self._facts.run_id, self.capture)

    @property
    def capture_document(self) -> Json:
        """How far it goes."""
        return capture_document(self._read, self.capture)

    @property
    def integrity_document(self) -> Json:
        """Whether what was captured is whole."""
        return integrity_document(self._read, self._facts)

    @cached_property
    def updates(self) -> Page:
        """What its nodes published."""
        return updates_page(self._read, self._facts.run_id)

    @cached_property
    def settings(self) -> Page:
        """What people may change about it."""
        return settings_page(self._read, self._facts)

    @cached_property
    def follow_ups(self) -> Page:
        """What waits for its end."""
        return follow_ups_page(self._read, self._facts.run_id)

    @cached_property
    def messages(self) -> Page:
        """What it told its session."""
        return messages_page(self._read, self._facts.run_id)


def _transitions(filling: _Filling) -> Json:
    """Return the transitions that are shown."""
    taken: list[Json] = list(filling.graph.transitions)
    return taken


_STATE: Final = "/state/"
_MEMBERS: Final[Mapping[str, Callable[[_Filling], Json]]] = {
    "/runRevision": lambda filling: filling.facts.run_revision,
    "/queue": lambda filling: filling.facts.queue().document(),
    "/manifest": lambda filling: filling.facts.manifest(),
    "/stepTotal": lambda filling: filling.step_total,
    "/graphSteps": lambda filling: filling.graph.steps.documents,
    "/graphStepStart": lambda filling: filling.graph.steps.start,
    "/graphStepTotal": lambda filling: filling.graph.steps.total,
    "/takenTransitions": _transitions,
    "/takenTransitionStart": lambda filling: filling.graph.transition_start,
    "/takenTransitionTotal": lambda filling: filling.graph.transition_total,
    "/graphCursor": lambda filling: filling.graph.cursor,
    "/updates": lambda filling: filling.updates.documents,
    "/updateStart": lambda filling: filling.updates.start,
    "/updateTotal": lambda filling: filling.updates.total,
    "/settingsScopes": lambda filling: filling.settings.documents,
    "/settingsStart": lambda filling: filling.settings.start,
    "/settingsTotal": lambda filling: filling.settings.total,
    "/followUpQueue": lambda filling: {"items": filling.follow_ups.documents},
    "/followUpStart": lambda filling: filling.follow_ups.start,
    "/followUpTotal": lambda filling: filling.follow_ups.total,
    "/workflowMessages": lambda filling: filling.messages.documents,
    "/workflowMessageStart": lambda filling: filling.messages.start,
    "/workflowMessageTotal": lambda filling: filling.messages.total,
    "/session/binding": lambda filling: filling.binding_document,
    "/session/capture": lambda filling: filling.capture_document,
    "/session/integrity": lambda filling: filling.integrity_document,
}
