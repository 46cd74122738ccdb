"""Looking for text in a run: the payload, and the page that answers it."""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from pi_workflows.base.limits import EXCERPT_CHARS_MAX, SEARCH_QUERY_CHARS_MAX
from pi_workflows.protocol.wire import Count, Id, Many, Maybe, Payload, Revision, Text, WireModel

SearchKind: TypeAlias = Literal["nodes", "errors", "outputs", "entries"]
"""What is looked through: node IDs; errors of steps, of the run and of its place in the queue;
outputs of steps, of which one is the run's; entries of captured sessions."""

SEARCH_KINDS: Final[tuple[SearchKind, ...]] = ("nodes", "errors", "outputs", "entries")

Query: TypeAlias = Annotated[
    str, StringConstraints(min_length=1, max_length=SEARCH_QUERY_CHARS_MAX)
]
"""The text that is looked for, whatever its case."""


class ViewSearch(Payload):
    """`view.search`: where a text occurs in a run; all `kinds` are looked through unless named."""

    query: Query
    kinds: Maybe[Many[SearchKind]] = None
    cursor: Maybe[Text] = None

    @model_validator(mode="after")
    def _names_each_once(self) -> Self:
        """Kinds are a set with something in it."""
        if self.kinds is not None and not 0 < len(set(self.kinds)) == len(self.kinds):
            raise PydanticCustomError("kinds", "kinds must name at least one, and none twice")
        return self


class SearchItem(WireModel):
    """One match: the first in a value or a name.

    `nodeId` is left out where the run itself is meant; `attemptId` and `at` where a node never
    started; `stepIndex` where no step is meant; `entrySeq` names an entry's place in the run. The
    match is `excerpt[matchStart:matchEnd]`, in code points. Times are ms.
    """

    kind: SearchKind
    node_id: Maybe[Text] = None
    attempt_id: Maybe[Id] = None
    step_index: Maybe[Count] = None
    entry_seq: Maybe[Count] = None
    at: Maybe[Count] = None
    excerpt: Annotated[str, StringConstraints(max_length=EXCERPT_CHARS_MAX)]
    match_start: Count
    match_end: Count


class SearchPage(WireModel):
    """`pi-workflows.search-page.v1`: matches in a run, in its order, and how far it was searched.

    The counts are those from the beginning of the search up to the end of this page; steps count
    where errors or outputs are asked for. Of `truncatedValues` only the beginning was searched, and
    holds no match. Without `nextCursor` the search is at its end; `complete` says that nothing of
    what was asked for was left out.
    """

    schema_id: Annotated[Literal["pi-workflows.search-page.v1"], Field(alias="schema")] = (
        "pi-workflows.search-page.v1"
    )
    run_id: Id
    revision: Revision
    query: Query
    kinds: Many[SearchKind]
    cursor: Maybe[Text] = None
    items: Many[SearchItem]
    next_cursor: Maybe[Text] = None
    complete: bool
    searched_steps: Count
    total_steps: Count
    searched_entries: Count
    total_entries: Count
    truncated_values: Count
