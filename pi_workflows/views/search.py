"""Where a text occurs in a run: one page of matches, a bounded piece of work.

A run is searched in one order: its nodes as the definition names them, its steps as they settled,
why the run itself failed or is parked, its captured entries. A page ends where its work or its room
does, and its cursor names the place where the next one begins.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.excerpt import excerpt, found, readable
from pi_workflows.base.limits import (
    CARRIED_BYTES_MAX,
    PAGE_BYTES_MAX,
    PAGE_ITEMS_MAX,
    SEARCH_PAGE_BYTES_MAX,
    SEARCH_ROWS_MAX,
    SEARCH_VALUE_BYTES_MAX,
)
from pi_workflows.base.sql import Read, load
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.protocol.search import SEARCH_KINDS, SearchItem, SearchKind, SearchPage
from pi_workflows.views.content import stored_value
from pi_workflows.views.facts import RunFacts, run_facts
from pi_workflows.views.heads import json_list, step_total
from pi_workflows.views.value import Value

SQL: Final = load(__package__, "search.sql")

_CHECK_CHARS: Final = 8
_CURSOR: Final = re.compile(r"([0-3])\.([0-9]{1,15})\.([0-9]{1,15})\.([0-9a-f]{8})")
# Each step has two places, as it may have failed of something and given something.
_PLACES: Final = 2


class _Place(NamedTuple):
    """Where a page begins.

    Attributes:
        section: Which part of the run, by its place in the order.
        at: Where in that part.
        truncated: How many values before were too large to be searched whole.
    """

    section: int
    at: int
    truncated: int


class _Count(NamedTuple):
    value: int


class _Beginning(NamedTuple):
    content: bytes


class _NodeHit(NamedTuple):
    node_path: str
    attempt_id: str | None
    step_index: int | None
    at_ms: int | None


class _Error(NamedTuple):
    error_hash: bytes | None


class _StepRow(NamedTuple):
    step_index: int
    node_id: str
    attempt_id: str
    finished_at: int | None
    error_hash: bytes | None
    error_media: str | None
    error_bytes: int | None
    error_content: bytes | None
    output_hash: bytes | None
    output_media: str | None
    output_bytes: int | None
    output_content: bytes | None

    def values(self) -> tuple[tuple[SearchKind, Value | None], ...]:
        """Return what the step failed of and what it gave, in the order of its places."""
        error = Value.of(self.error_hash, self.error_media, self.error_bytes, self.error_content)
        output = Value.of(
            self.output_hash, self.output_media, self.output_bytes, self.output_content
        )
        return ("errors", error), ("outputs", output)


class _EntryRow(NamedTuple):
    run_seq: int
    recorded_at: int
    attempt_id: str | None
    node_id: str | None
    entry_hash: bytes
    entry_media: str
    entry_bytes: int
    entry_content: bytes | None


@dataclass(frozen=True, slots=True)
class _Origin:
    """What a match says about where its text stands; as `SearchItem`."""

    kind: SearchKind
    node_id: str | None = None
    attempt_id: str | None = None
    step_index: int | None = None
    entry_seq: int | None = None
    at: int | None = None


@dataclass(slots=True)
class _Walk:
    """The work of one page.

    Attributes:
        read: The page's read.
        facts: The run.
        query: What is looked for, case folded.
        kinds: What is looked through.
        step_total: How many steps the run has.
        entry_total: How many entries it has.
        truncated: How many values were too large to be searched whole, from the beginning on.
        items: The matches of this page.
    """

    read: Read
    facts: RunFacts
    query: str
    kinds: Sequence[SearchKind]
    step_total: int
    entry_total: int
    truncated: int
    items: list[SearchItem] = field(default_factory=list[SearchItem])
    _rows_left: int = SEARCH_ROWS_MAX
    _bytes_left: int = SEARCH_PAGE_BYTES_MAX
    _room_left: int = PAGE_BYTES_MAX

    def rows(self, first: int, total: int) -> range:
        """Return those of a part's rows that this page may still look at."""
        rows = range(first, min(total, first + self._rows_left))
        self._rows_left -= len(rows)
        return rows

    def value(self, origin: _Origin, value: Value) -> bool:
        """Look through a value; False when this page has no work or room left for it."""
        is_first = self._bytes_left == SEARCH_PAGE_BYTES_MAX
        if value.byte_length > self._bytes_left and not is_first:
            return False
        self._bytes_left -= value.byte_length
        text = readable(self._beginning(value), value.media_type)
        match = found(text, self.query)
        if match is not None:
            return self.put(origin, text, match)
        self.truncated += value.byte_length > SEARCH_VALUE_BYTES_MAX
        return True

    def put(self, origin: _Origin, text: str, match: tuple[int, int]) -> bool:
        """Add a match; False when this page has no room left for it."""
        line = excerpt(text, *match)
        item = SearchItem(
            kind=origin.kind,
            node_id=origin.node_id,
            attempt_id=origin.attempt_id,
            step_index=origin.step_index,
            entry_seq=origin.entry_seq,
            at=origin.at,
            excerpt=line.text,
            match_start=line.start,
            match_end=line.end,
        )
        # Behind each stands a comma or the closing bracket.
        size = len(canonical.encode(item.document())) + 1
        if self.items and (size > self._room_left or len(self.items) == PAGE_ITEMS_MAX):
            return False
        self._room_left -= size
        self.items.append(item)
        return True

    def _beginning(self, value: Value) -> bytes:
        """Return the part of a value that is searched."""
        if value.content is not None:
            return value.content
        row = self.read.one(
            _Beginning,
            SQL["beginning"],
            digest=value.digest,
            bytes_max=SEARCH_VALUE_BYTES_MAX,
        )
        assert row is not None, "a value without a row"
        return row.content


def search_page(
    read: Read,
    run_id: str,
    query: str,
    kinds: Sequence[SearchKind] | None = None,
    cursor: str | None = None,
) -> SearchPage:
    """Look for a text in a run.

    Args:
        read: One consistent read.
        run_id: The run.
        query: The text; its case does not matter.
        kinds: What is looked through; None is everything.
        cursor: The `nextCursor` of the page before; None begins.

    Returns:
        `pi-workflows.search-page.v1`: the first match of each name and value, at most 256 and
        64 KiB of them, out of at most 512 steps or entries and 512 KiB of values.

    Raises:
        NotFound: There is no such run.
        PayloadInvalid: `searchCursor`, it is no cursor of this search.
    """
    facts = run_facts(read, run_id)
    asked: tuple[SearchKind, ...] = tuple(
        kind for kind in SEARCH_KINDS if kinds is None or kind in kinds
    )
    check = _check(run_id, query, asked)
    begin = _Place(0, 0, 0) if cursor is None else _parsed(cursor, check)
    entries = read.one(_Count, SQL["entry_total"], run_id=run_id)
    walk = _Walk(
        read=read,
        facts=facts,
        query=query.casefold(),
        kinds=asked,
        step_total=step_total(read, run_id),
        entry_total=entries.value if entries is not None else 0,
        truncated=begin.truncated,
    )
    end = _walked(walk, begin)
    steps_done, entries_done = _done(walk, end)
    return SearchPage(
        run_id=run_id,
        revision=facts.revision,
        query=query,
        kinds=asked,
        cursor=cursor,
        items=tuple(walk.items),
        next_cursor=None if end is None else f"{'.'.join(map(str, end))}.{check}",
        complete=end is None and walk.truncated == 0,
        searched_steps=steps_done,
        total_steps=walk.step_total,
        searched_entries=entries_done,
        total_entries=walk.entry_total,
        truncated_values=walk.truncated,
    )


def _walked(walk: _Walk, begin: _Place) -> _Place | None:
    """Search from a place on; return the place where the page ended, None at the very end."""
    for number, (kinds, section) in enumerate(_SECTIONS):
        if number < begin.section or not kinds.intersection(walk.kinds):
            continue
        index = section(walk, begin.at if number == begin.section else 0)
        if index is not None:
            return _Place(number, index, walk.truncated)
    return None


def _done(walk: _Walk, end: _Place | None) -> tuple[int, int]:
    """Return how many steps and entries were searched up to a place."""
    steps, entries = walk.step_total, walk.entry_total
    if end is not None and end.section <= _STEPS:
        steps = end.at // _PLACES if end.section == _STEPS else 0
    if end is not None and end.section <= _ENTRIES:
        entries = end.at if end.section == _ENTRIES else 0
    return (
        steps if _SECTIONS[_STEPS][0].intersection(walk.kinds) else 0,
        entries if "entries" in walk.kinds else 0,
    )


def _nodes(walk: _Walk, first: int) -> int | None:
    """Look through the names of the nodes; return where the page ended, or None."""
    paths = list(walk.read.document(Snapshot.parse, walk.facts.definition_hash).nodes)
    matches = [
        (index, match)
        for index in range(first, len(paths))
        if (match := found(paths[index], walk.query)) is not None
    ]
    asked = [paths[index] for index, _ in matches[: PAGE_ITEMS_MAX + 1]]
    hits = walk.read.all(
        _NodeHit, SQL["node_hits"], run_id=walk.facts.run_id, node_paths=json_list(asked)
    )
    # One more than a page holds is refused by it, and is where the next one begins.
    for (index, match), hit in zip(matches, hits, strict=False):
        origin = _Origin("nodes", hit.node_path, hit.attempt_id, hit.step_index, at=hit.at_ms)
        if not walk.put(origin, hit.node_path, match):
            return index
    return None


def _steps(walk: _Walk, first: int) -> int | None:
    """Look through the errors and outputs of steps; return where the page ended, or None."""
    steps = walk.rows(first // _PLACES, walk.step_total)
    rows = walk.read.all(
        _StepRow,
        SQL["step_values"],
        run_id=walk.facts.run_id,
        start=steps.start,
        stop=steps.stop,
        carried_bytes=CARRIED_BYTES_MAX,
    )
    for row in rows:
        for place, (kind, value) in enumerate(row.values(), row.step_index * _PLACES):
            if place < first or kind not in walk.kinds or value is None:
                continue
            origin = _Origin(kind, row.node_id, row.attempt_id, row.step_index, at=row.finished_at)
            if not walk.value(origin, value):
                return place
    return None if steps.stop >= walk.step_total else steps.stop * _PLACES


def _run(walk: _Walk, first: int) -> int | None:
    """Look through why the run failed and why it is parked; return where the page ended, or None.

    What its last step failed of was looked through; its output is always that step's.
    """
    facts = walk.facts
    last = walk.read.one(_Error, SQL["last_error"], run_id=facts.run_id)
    known = {None if last is None else last.error_hash, None}
    reasons = (
        (facts.error_hash, facts.finished_at),
        (facts.queue_error_hash, facts.queue_updated_at),
    )
    for place, (digest, at_ms) in enumerate(reasons):
        if digest is None or digest in known:
            continue
        # The queue takes over the error of a run that ended.
        known.add(digest)
        value = stored_value(walk.read, digest)
        if place < first or value is None:
            continue
        if not walk.value(_Origin("errors", at=at_ms), value):
            return place
    return None


def _entries(walk: _Walk, first: int) -> int | None:
    """Look through captured entries; return how many were, or None at the end."""
    entries = walk.rows(first, walk.entry_total)
    rows = walk.read.all(
        _EntryRow,
        SQL["entry_values"],
        run_id=walk.facts.run_id,
        after=entries.start,
        last=entries.stop,
        carried_bytes=CARRIED_BYTES_MAX,
    )
    for row in rows:
        value = Value.of(row.entry_hash, row.entry_media, row.entry_bytes, row.entry_content)
        origin = _Origin(
            "entries", row.node_id, row.attempt_id, entry_seq=row.run_seq, at=row.recorded_at
        )
        if value is not None and not walk.value(origin, value):
            return row.run_seq - 1
    return None if entries.stop >= walk.entry_total else entries.stop


_SECTIONS: Final[tuple[tuple[frozenset[SearchKind], Callable[[_Walk, int], int | None]], ...]] = (
    (frozenset({"nodes"}), _nodes),
    (frozenset({"errors", "outputs"}), _steps),
    (frozenset({"errors"}), _run),
    (frozenset({"entries"}), _entries),
)
_STEPS, _ENTRIES = 1, 3


def _check(run_id: str, query: str, kinds: Sequence[SearchKind]) -> str:
    """Return what a cursor carries, so that it goes on in the search that it is of."""
    asked: Json = [run_id, query, *kinds]
    return hashlib.sha256(canonical.encode(asked)).hexdigest()[:_CHECK_CHARS]


def _parsed(cursor: str, check: str) -> _Place:
    """Read a cursor. Raises PayloadInvalid when it is none, or of another search."""
    match = _CURSOR.fullmatch(cursor)
    if match is None or match[4] != check:
        raise PayloadInvalid(
            "cursor: must be the nextCursor of the same search", code="searchCursor", field="cursor"
        )
    return _Place(int(match[1]), int(match[2]), int(match[3]))
