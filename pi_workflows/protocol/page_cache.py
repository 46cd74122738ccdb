"""The pages of one run that somebody looks at: of each kind the one shown and its neighbours.

A page stays good until a change of its own kind, whatever else changes the run's view: what was
settled does not change any more, so that a sequence that grew costs only the page at its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from pi_workflows.base.vocabulary import PageKind
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.views import RunPage, ViewPage

# The kinds whose items a target changes.
_CHANGED: Final[Mapping[str, str]] = {
    "replay/steps:reload": "steps",
    "inspector/settings": "settings",
    "inspector/follow_ups": "follow_ups",
    "inspector/updates": "updates",
    "inspector/aggregates:reload": "aggregate",
    "inspector/messages": "workflow_messages",
}
# The kinds that a target makes longer.
_GROWN: Final[Mapping[str, tuple[str, ...]]] = {
    "timeline/trace:tail": ("trace", "trace_at_step"),
    "timeline/session:tail": ("session_events",),
    "timeline/session:reload": ("session_events",),
    "conversation/entries:tail": ("session_entries",),
}
# Kinds whose cursor is no index into their items.
_ELSEWHERE: Final = frozenset({"trace_at_step"})


@dataclass(slots=True)
class _Shelf:
    """The pages of one kind.

    Attributes:
        cursor: What is looked at; None is the end.
        pages: At most three.
        changed_at: Pages of older revisions are wrong.
        grown_at: Pages of older revisions that end at the end are too short.
    """

    cursor: int | None
    changed_at: int
    grown_at: int = 0
    pages: list[RunPage] = field(default_factory=list[RunPage])

    @property
    def current(self) -> RunPage | None:
        """The page that has the cursor, furthest from its own ends."""
        return self.with_index(self.cursor)

    def with_index(self, index: int | None) -> RunPage | None:
        """Return the page in which an item lies deepest, None when there is none."""
        found = [page for page in self.pages if _has(page, index)]
        return max(found, key=lambda page: _depth(page, index), default=None)

    def is_good(self, page: RunPage) -> bool:
        """Say whether a page is as new as its items have to be."""
        is_long_enough = page.revision >= self.grown_at or _end(page) < page.total
        return page.revision >= self.changed_at and is_long_enough

    def prune(self) -> None:
        """Drop what is not good, and what is neither shown nor beside it."""
        self.pages = [page for page in self.pages if self.is_good(page)]
        current = self.current
        beside = [current]
        if current is not None:
            beside += [self.with_index(index) for index in _edges(current)]
        self.pages = [page for page in self.pages if any(page is kept for kept in beside)]


class PageCache:
    """The pages of one run that somebody looks at.

    Args:
        run_id: The run.
    """

    def __init__(self, run_id: str) -> None:
        """Begin without a page."""
        self._run_id = run_id
        self._shelves: dict[str, _Shelf] = {}
        self._changed_at = 0

    def __len__(self) -> int:
        """How many pages are kept: at most three of a kind."""
        return sum(len(shelf.pages) for shelf in self._shelves.values())

    def show(self, kind: PageKind, cursor: int | None = None) -> RunPage | None:
        """Look at a place.

        Args:
            kind: Of which items.
            cursor: The index of one; None is the end.

        Returns:
            The page that has it, when it is here: otherwise ask for what is `wanted`. A page of
            steps carries the graph at its own `graph_cursor`.
        """
        shelf = self._shelves.setdefault(kind, _Shelf(cursor, self._changed_at))
        shelf.cursor = cursor
        shelf.prune()
        return shelf.current

    def wanted(self, kind: PageKind) -> tuple[ViewPage, ...]:
        """Return what to ask for: the page that is looked at, or the neighbours that it lacks."""
        shelf = self._shelves.get(kind)
        if shelf is None:
            return ()
        current = shelf.current
        if current is None:
            return (ViewPage(kind=kind, cursor=shelf.cursor),)
        return tuple(
            ViewPage(kind=kind, cursor=index)
            for index in _edges(current)
            if shelf.with_index(index) is None
        )

    def take(self, asked: ViewPage, page: RunPage) -> bool:
        """Take the answer to a question.

        Args:
            asked: The question.
            page: The answer.

        Returns:
            Whether it was kept: a page of another run, kind, cursor or revision than asked for, one
            that is too old, and one that is not looked at any more are dropped.
        """
        shelf = self._shelves.get(asked.kind)
        echo = (page.run_id, page.kind, page.cursor)
        if shelf is None or echo != (self._run_id, asked.kind, asked.cursor):
            return False
        if asked.expected_revision not in (None, page.revision):
            return False
        if _end(page) > page.total or not _has(page, asked.cursor):
            return False
        shelf.pages = [kept for kept in shelf.pages if kept.cursor != page.cursor]
        shelf.pages.append(page)
        shelf.prune()
        return any(kept is page for kept in shelf.pages)

    def note(self, change: Change, revision: int | None) -> None:
        """Drop what a change made wrong.

        Args:
            change: What the run's mirror took.
            revision: The mirror's revision after it.
        """
        if change.is_snapshot and revision is not None:
            self._changed_at = revision
            for shelf in self._shelves.values():
                shelf.changed_at = revision
        for target, changed_at in change.targets.items():
            changed = self._shelves.get(_CHANGED.get(target, ""))
            if changed is not None:
                changed.changed_at = changed_at
            for kind in _GROWN.get(target, ()):
                if kind in self._shelves:
                    self._shelves[kind].grown_at = changed_at
        for shelf in self._shelves.values():
            shelf.prune()


def _end(page: RunPage) -> int:
    """Return the index behind the last item."""
    return page.start + len(page.items)


def _has(page: RunPage, index: int | None) -> bool:
    """Say whether an item is on a page; one behind the end is the last one."""
    if page.kind in _ELSEWHERE:
        return page.cursor == index
    if index is None or index >= page.total:
        return _end(page) == page.total
    return page.start <= index < _end(page)


def _depth(page: RunPage, index: int | None) -> int:
    """Return how far an item is from the nearer end of its page, and the newer page in a draw."""
    if index is None:
        return page.revision
    return min(index - page.start, _end(page) - 1 - index)


def _edges(page: RunPage) -> tuple[int, ...]:
    """Return the indexes of the items just before and behind a page, as far as there are any."""
    if page.kind in _ELSEWHERE:
        return ()
    before, behind = page.start - 1, _end(page)
    return tuple(index for index in (before, behind) if 0 <= index < page.total)
