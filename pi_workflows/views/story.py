"""The story of a run: what its events say, in sentences for people, and where its time went.

Everything comes from the log, so that it can be told of any moment and by anybody who has the file.
A sentence names who acted by class and a value by its size and digest: identities, tokens and the
values themselves stay out. An error's message is told; it is the run's own account of itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import NamedTuple

from pi_workflows.base.limits import PAGE_ITEMS_MAX
from pi_workflows.base.sql import Read
from pi_workflows.domain.events import decode
from pi_workflows.views.facts import run_facts
from pi_workflows.views.story_narrator import Narrator
from pi_workflows.views.story_sentences import Story, Told
from pi_workflows.views.story_table import tell
from pi_workflows.views.story_times import Timeline, Totals
from pi_workflows.views.story_values import SQL, Values

__all__ = ["Story", "run_totals", "story"]


class _EventRow(NamedTuple):
    event_seq: int
    revision: int
    at_ms: int
    actor_type: str
    event_type: str
    payload: bytes


class _Child(NamedTuple):
    run_id: str
    event_seq: int
    at_ms: int
    actor_type: str
    event_type: str


def story(read: Read, run_id: str) -> Story:
    """Tell the story of a run.

    Args:
        read: One consistent read.
        run_id: The run.

    Returns:
        The sentences in the order of their events, and where the time went.

    Raises:
        NotFound: There is no such run (`runMissing`).
        Corrupt: An event cannot be read, or a value that it names is missing.
    """
    facts = run_facts(read, run_id)
    narrator = Narrator(Values(read))
    timeline = Timeline()
    own = _events(read, facts.resource_id, is_run=True)
    resources = read.all(_name, SQL["story_effects"], resource_id=facts.resource_id)
    resources += read.all(_name, SQL["story_decisions"], run_id=run_id)
    resources += read.all(_name, SQL["story_messages"], run_id=run_id)
    resources += read.all(_name, SQL["story_settings"], run_id=run_id)
    resources += read.all(_name, SQL["story_follow_ups"], run_id=run_id)
    others = [_events(read, each, is_run=False) for each in resources]
    for told in heapq.merge(own, *others, key=lambda told: told.event_seq):
        if told.seq is not None:
            timeline.take(told.at_ms, told.fact)
        narrator.turn_to(told)
        tell(narrator, told.fact)
    narrator.end()
    for child in read.all(_Child, SQL["story_child"], run_id=run_id):
        narrator.restarted(*child)
    return Story(
        run_id=run_id,
        workflow_name=facts.workflow_name,
        title=facts.title,
        status=facts.status,
        sentences=tuple(narrator.sentences),
        totals=timeline.totals(),
    )


def run_totals(read: Read, run_id: str) -> Totals:
    """Return where the time of a run went; raises as `story`."""
    timeline = Timeline()
    for told in _events(read, run_facts(read, run_id).resource_id, is_run=True):
        timeline.take(told.at_ms, told.fact)
    return timeline.totals()


def _events(read: Read, resource_id: str, *, is_run: bool) -> Iterator[Told]:
    """Yield the events of a resource, in order."""
    revision = 0
    while True:
        rows = read.all(
            _EventRow,
            SQL["story_events"],
            resource_id=resource_id,
            after_revision=revision,
            events_max=PAGE_ITEMS_MAX,
        )
        if not rows:
            return
        for row in rows:
            yield Told(
                event_seq=row.event_seq,
                seq=row.revision if is_run else None,
                at_ms=row.at_ms,
                actor=row.actor_type,
                fact=decode(row.event_type, row.payload),
            )
        revision = rows[-1].revision


def _name(value: str) -> str:
    """Return the only column of a row."""
    return value
