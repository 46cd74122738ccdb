"""`search`: where a text occurs in runs, and how much of them was looked through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound, PayloadInvalid, RevisionConflict
from pi_workflows.base.excerpt import excerpt
from pi_workflows.base.limits import MATCHES_SHOWN_MAX, PAGE_ITEMS_MAX, SEARCH_VALUE_BYTES_MAX
from pi_workflows.cli.connection import ask
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.failure import unsent
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.measures import plural, size
from pi_workflows.cli.output import Line, Output
from pi_workflows.cli.quoting import quoted, quoted_words
from pi_workflows.cli.reader import Reader
from pi_workflows.cli.run_list import RunListItem
from pi_workflows.cli.source import Source, source
from pi_workflows.cli.table import short_ids
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.search import SEARCH_KINDS, SearchItem, SearchPage, ViewSearch
from pi_workflows.protocol.views import RunListPage, ViewRunsPage

_NOTHING_FOUND: Final = 1
# A list that changes while it is read is read again this often.
_TRIES: Final = 5
# A window of this width holds whole names of usual length beside the text.
_WIDE_COLUMNS: Final = 120
_ID_CHARS_MIN: Final = 26
_ID_CHARS_NARROW: Final = 12
_NODE_CHARS_MIN: Final = 8
_NODE_CHARS_MAX: Final = 32
_EXCERPT_CHARS_MIN: Final = 24
_STEP_CHARS: Final = 4
_NONE: Final = "-"
_WORDS: Final = {"nodes": "node", "errors": "error", "outputs": "output", "entries": "entry"}


@dataclass(frozen=True, slots=True)
class Search:
    """What `search` was told.

    Attributes:
        query: The text.
        kinds: What is looked through; nothing means everything.
        run: The only run, as it was typed; None searches the newest ones.
        limit: How many of those.
        file: A database that no server has open; None asks the server.
    """

    query: str
    kinds: Sequence[str]
    run: str | None
    limit: int
    file: Path | None


@dataclass(slots=True)
class _Found:
    """What was found so far.

    Attributes:
        run_total: How many runs there are to search, the ones over the limit included.
        items: Matches with their runs.
        pages: The last page of each run that was searched.
        is_cut: Whether a page held more matches than are shown.
    """

    run_total: int
    items: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    pages: list[SearchPage] = field(default_factory=list[SearchPage])
    is_cut: bool = False

    @property
    def is_full(self) -> bool:
        """Whether there are as many matches as are shown."""
        return len(self.items) == MATCHES_SHOWN_MAX

    @property
    def is_complete(self) -> bool:
        """Whether all of every run was searched, and every match is shown."""
        has_all = len(self.pages) == self.run_total and all(each.complete for each in self.pages)
        return has_all and not self.is_cut

    def add(self, page: SearchPage) -> Sequence[SearchItem]:
        """Keep the matches of a page, and return those that are shown."""
        shown = page.items[: MATCHES_SHOWN_MAX - len(self.items)]
        self.items += [{"runId": page.run_id, **item.document()} for item in shown]
        self.is_cut = len(shown) < len(page.items)
        return shown

    def document(self, query: str, kinds: Sequence[str]) -> dict[str, Json]:
        """Return `pi-workflows.cli-search.v1`."""
        return {
            "schema": "pi-workflows.cli-search.v1",
            "query": query,
            "kinds": list(kinds),
            "items": [*self.items],
            "runs": [_run_document(page) for page in self.pages],
            "totalRuns": self.run_total,
            "complete": self.is_complete,
        }


def search_runs(invocation: Invocation, asked: Search) -> int:
    """Look for a text in runs, the newest first.

    Args:
        invocation: The invocation.
        asked: What for, and where.

    Returns:
        The exit code: 0 with a match, 1 without one.

    Raises:
        WrongUsage: The text is empty or too long.
        NotFound: There is no such run.
        Refused: `runAmbiguous`.
        WorkflowsError: As `source`.
    """
    output = invocation.output
    kinds = [kind for kind in SEARCH_KINDS if kind in (asked.kinds or SEARCH_KINDS)]
    try:
        payload = ViewSearch.parse({"query": asked.query, "kinds": [*kinds]})
    except PayloadInvalid as error:
        raise unsent(error) from None
    with source(invocation, asked.file) as where:
        run_ids, total = _runs(where, asked)
        found = _Found(total)
        writer = _Writer(output, [] if asked.run is not None else run_ids)
        for run_id in run_ids:
            try:
                _search(where.reader, run_id, payload, found, writer)
            except NotFound:
                if asked.run is not None:
                    raise
                # It was removed since the list was read.
                found.run_total -= 1
    if output.is_json:
        output.document(found.document(payload.query, kinds))
    else:
        _conclude(output, asked, found, where.option)
    return 0 if found.items else _NOTHING_FOUND


def _search(
    reader: Reader, run_id: str, payload: ViewSearch, found: _Found, writer: _Writer
) -> None:
    """Search one run page by page, to its end or until there are as many matches as are shown."""
    page: SearchPage | None = None
    while not found.is_full and (page is None or page.next_cursor is not None):
        question = payload.model_copy(update={"cursor": page.next_cursor if page else None})
        page = SearchPage.parse(ask(reader, Operation.VIEW_SEARCH, question, run_id=run_id).receipt)
        writer.write(run_id, found.add(page))
    if page is not None:
        found.pages.append(page)


def _runs(where: Source, asked: Search) -> tuple[list[str], int]:
    """Return the runs that are searched, and how many there are."""
    if asked.run is not None:
        return [where.run_id_of(asked.run)], 1
    for _ in range(_TRIES):
        try:
            return _newest(where.reader, asked.limit)
        except RevisionConflict:
            continue
    raise RevisionConflict("The list of runs changes faster than it can be read.")


def _newest(reader: Reader, limit: int) -> tuple[list[str], int]:
    """Return the newest runs and how many there are. Raises RevisionConflict when they change."""
    run_ids: list[str] = []
    revision: str | None = None
    while True:
        cursor = None if revision is None else len(run_ids)
        question = ViewRunsPage(cursor=cursor, revision=revision, limit=limit - len(run_ids))
        page = RunListPage.parse(ask(reader, Operation.VIEW_RUNS_PAGE, question).receipt)
        run_ids += [RunListItem.parse(item).run_id for item in page.items]
        revision = page.revision
        if not page.items or len(run_ids) >= min(limit, page.total):
            return run_ids, page.total


class _Writer:
    """Writes matches for people as they are found, a line each.

    Args:
        output: Where to.
        run_ids: The runs that are searched; none when the run is known.
    """

    def __init__(self, output: Output, run_ids: Sequence[str]) -> None:
        self._output = output
        is_wide = (output.columns or _WIDE_COLUMNS) >= _WIDE_COLUMNS
        chars_min = _ID_CHARS_MIN if is_wide else _ID_CHARS_NARROW
        self._names = short_ids(output, run_ids, chars_min=chars_min)
        self._run_chars = max(map(len, self._names.values()), default=0)
        self._node_chars = _NODE_CHARS_MIN

    def write(self, run_id: str, items: Sequence[SearchItem]) -> None:
        """Write the matches of one page."""
        if self._output.is_json:
            return
        widest = max((len(item.node_id or "") for item in items), default=0)
        self._node_chars = max(self._node_chars, min(widest, _NODE_CHARS_MAX))
        self._output.styled(self._line(self._names.get(run_id), item) for item in items)

    def _line(self, name: str | None, item: SearchItem) -> Line:
        """Return a match as run, step, node, kind, and the excerpt with the match in it."""
        run = "" if name is None else f"{escaped(name):<{self._run_chars}}  "
        step = _NONE if item.step_index is None else str(item.step_index)
        node = escaped(item.node_id or _NONE)
        place = f"{step:>{_STEP_CHARS}}  {node:<{self._node_chars}}  {_WORDS[item.kind]:<6}  "
        text, start, end = self._fitted(item, len(run) + len(place))
        return (
            (run, ""),
            (place, "dim"),
            (escaped(text[:start]), ""),
            (escaped(text[start:end]), "bold"),
            (escaped(text[end:]), ""),
        )

    def _fitted(self, item: SearchItem, chars_before: int) -> tuple[str, int, int]:
        """Return what of an excerpt stands in the window, so that its match is seen."""
        text, start, end = item.excerpt, item.match_start, item.match_end
        columns = self._output.columns
        if columns is None:
            return text, start, end
        return excerpt(text, start, end, max(_EXCERPT_CHARS_MIN, columns - chars_before))


def _run_document(page: SearchPage) -> dict[str, Json]:
    """Return how far a run was searched."""
    return {
        "runId": page.run_id,
        "revision": page.revision,
        "complete": page.complete,
        "searchedSteps": page.searched_steps,
        "totalSteps": page.total_steps,
        "searchedEntries": page.searched_entries,
        "totalEntries": page.total_entries,
        "truncatedValues": page.truncated_values,
    }


def _conclude(output: Output, asked: Search, found: _Found, option: str) -> None:
    """Say how a match is looked at, how much was searched, and what was not."""
    step = next((each for each in found.items if "stepIndex" in each), None)
    if step is not None:
        place = f"{quoted(str(step['runId']))} --page steps --cursor {step['stepIndex']}{option}"
        output.note(f"See the first step: pi-workflows show {place}")
    if found.is_complete:
        output.note(f"Searched all of {plural(found.run_total, 'run')}.")
        return
    if found.is_full:
        output.note(f"Stopped after {MATCHES_SHOWN_MAX:,} matches; a longer text finds fewer.")
    large = sum(page.truncated_values for page in found.pages)
    if large:
        beginning = size(SEARCH_VALUE_BYTES_MAX)
        output.note(f"Of {plural(large, 'value')} only the first {beginning} were searched.")
    left = found.run_total - len(found.pages)
    more = ""
    if left and not found.is_full and asked.limit < PAGE_ITEMS_MAX:
        words = [asked.query, *(word for kind in asked.kinds for word in ("--kind", kind))]
        limit = min(found.run_total, PAGE_ITEMS_MAX)
        more = f": pi-workflows search {quoted_words(words)} --limit {limit}{option}"
    rest = f"; {left:,} older not{more}" if left else ""
    output.note(f"Searched {plural(len(found.pages), 'run')}{rest}.")
