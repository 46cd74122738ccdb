"""The run list, replaced only once all of its pages were collected at one revision.

The client protocol, "Run list": an event brings the first page, the rest is asked for, and pages of
different revisions do not fit together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome, PayloadInvalid
from pi_workflows.base.limits import PAGE_ITEMS_MAX, RUN_LIST_DEFAULT
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.views import RunListPage, SubscriptionFailure, ViewRunsPage

_NOTHING: Final = Change()


@dataclass(slots=True)
class _Collection:
    """Pages of one revision.

    Attributes:
        revision: What the list is called; None while its first page is asked for.
        total: How many runs it has in all.
        items: Those that came, from the first on.
        newer: The first page that came meanwhile: what stands behind it may have changed too.
    """

    revision: str | None = None
    total: int = 0
    items: list[Json] = field(default_factory=list[Json])
    newer: RunListPage | None = None

    @classmethod
    def begin(cls, page: RunListPage) -> _Collection:
        """Start with a first page."""
        return cls(page.revision, page.total, list(page.items))


class RunListMirror:
    """The newest runs, as they stood at one revision of the list.

    Args:
        limit: How many; every run when None.
    """

    def __init__(self, limit: int | None = RUN_LIST_DEFAULT) -> None:
        """Begin without a list."""
        self._limit = limit
        self._items: tuple[Json, ...] = ()
        self._total = 0
        self._revision: str | None = None
        self._is_stale = True
        self._collection: _Collection | None = None

    @property
    def items(self) -> tuple[Json, ...]:
        """The runs, newest first: items of `pi-workflows.run-list-page.v1`. Never change them."""
        return self._items

    @property
    def total(self) -> int:
        """How many runs the whole list has."""
        return self._total

    @property
    def revision(self) -> str | None:
        """What the list is called; None before the first one."""
        return self._revision

    @property
    def is_stale(self) -> bool:
        """Whether the list is for showing only: there is none, or the connection is lost."""
        return self._is_stale

    @property
    def page_limit(self) -> int | None:
        """How many runs a page is asked for; None leaves it to the server."""
        return None if self._limit is None else min(self._limit, PAGE_ITEMS_MAX)

    def take(self, event: Event) -> Change:
        """Take what the subscription tells.

        Args:
            event: The next event, in order.

        Returns:
            What changed: nothing until every page is there.
        """
        try:
            if event.event is EventKind.UNAVAILABLE:
                self._is_stale = True
                self._collection = None
                return Change(failure=SubscriptionFailure.parse(event.payload))
            if event.event is not EventKind.RUNS:
                return Change(fault="eventUnknown")
            page = RunListPage.parse(event.payload)
        except PayloadInvalid:
            return Change(fault="eventInvalid")
        if page.start:
            return Change(fault="pageMismatch")
        under_way = self._collection
        if under_way is not None and under_way.revision == page.revision:
            # Beginning again at each event would never end while there are many.
            under_way.newer = page
            return _NOTHING
        self._collection = _Collection.begin(page)
        return self._finish()

    @property
    def wanted(self) -> ViewRunsPage | None:
        """The page to ask for now; None while the list is complete."""
        collection = self._collection
        if collection is None:
            return None
        if collection.revision is None:
            return ViewRunsPage(limit=self.page_limit)
        return ViewRunsPage(
            cursor=len(collection.items), revision=collection.revision, limit=self.page_limit
        )

    def take_page(self, asked: ViewRunsPage, reply: Reply) -> Change:
        """Take the answer to `wanted`.

        Args:
            asked: What was asked.
            reply: What came of it. A page of another revision, or one that nobody waits for any
                more, is dropped.

        Returns:
            What changed: nothing until every page is there.
        """
        collection = self._collection
        if collection is None or asked != self.wanted:
            return _NOTHING
        if reply.outcome is Outcome.CONFLICT:
            self._collection = _Collection()
            return _NOTHING
        if not reply.is_done:
            return self._give_up("pageRefused")
        try:
            page = RunListPage.parse(reply.receipt)
        except PayloadInvalid:
            return self._give_up("pageInvalid")
        if collection.revision is None:
            collection = self._collection = _Collection(page.revision, page.total)
        is_next = (page.revision, page.start) == (collection.revision, len(collection.items))
        if not is_next or not (page.items or page.start == page.total):
            return self._give_up("pageMismatch")
        collection.items += page.items
        collection.total = page.total
        return self._finish()

    def give_up(self) -> None:
        """Note that a page will not come: the next event begins again."""
        self._collection = None

    def _give_up(self, code: str) -> Change:
        """Keep the list that is there."""
        self._collection = None
        return Change(fault=code)

    def _finish(self) -> Change:
        """Replace the list when every page is there."""
        collection = self._collection
        assert collection is not None, "a page came"
        needed = collection.total
        if self._limit is not None:
            needed = min(needed, self._limit)
        if len(collection.items) < needed:
            return _NOTHING
        self._items = tuple(collection.items[:needed])
        self._total, self._revision = collection.total, collection.revision
        self._is_stale = False
        self._collection = None
        if collection.newer is not None:
            self._collection = _Collection.begin(collection.newer)
            self._finish()
        return Change(is_snapshot=True)
