"""A run's story as lines for people: its sentences, loops folded, and where the time went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from pi_workflows.audit.explaining import Sentence, Story, Totals
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.measures import day_and_time, duration, plural
from pi_workflows.cli.output import Line
from pi_workflows.cli.paragraph import wrapped

_MS_CHARS: Final = len(".000")
_LABEL: Final = 13
_TIMES_FOLDED_MIN: Final = 4
_CYCLE_MAX: Final = 16
# What may stand behind a fold: all went as it should, the same way each time.
_FOLDED: Final = frozenset(
    {
        "attempt.settled",
        "attempt.started",
        "effect.applied",
        "effect.attempt_started",
        "request.submitted",
        "run.resumed",
        "run.waiting",
    }
)
_SHARES: Final = (
    ("active", "active_ms", "nodes were worked on"),
    ("between", "between_ms", "runners started, or were between two nodes"),
    ("queued", "queued_ms", "it waited for a free runner"),
    ("delayed", "delayed_ms", "it was not due yet"),
    ("waiting", "waiting_ms", "it waited for answers"),
    ("paused", "paused_ms", "it was paused"),
    ("parked", "parked_ms", "it stood still because of an error"),
    ("interrupted", "interrupted_ms", "its runner was gone and nobody had noticed"),
    ("excess", "excess_ms", "too much was measured: the wall clock was set"),
)
_SHOWN_MS_MIN: Final = 100


@dataclass(frozen=True, slots=True)
class Fold:
    """What stands for repetitions of the sentences before it.

    Attributes:
        length: How many sentences are repeated.
        times: How often.
        until_ms: When the last of them was.
    """

    length: int
    times: int
    until_ms: int


Told: TypeAlias = Sentence | Fold


def folded(sentences: Sequence[Sentence]) -> Iterator[Told]:
    """Yield sentences; of a cycle that comes again and again the first round only.

    Args:
        sentences: A story's sentences.
    """
    keys = [_key(each, at) for at, each in enumerate(sentences)]
    at = 0
    while at < len(sentences):
        length, times = _cycle(keys, at)
        yield from sentences[at : at + length]
        at += length
        if times > 1:
            last = at + length * (times - 1)
            yield Fold(length, times - 1, sentences[last - 1].at_ms)
            at = last


def _key(sentence: Sentence, at: int) -> tuple[object, ...]:
    """Return what makes sentences alike; one that must be read is like no other."""
    if sentence.type in _FOLDED and sentence.outcome in (None, "ok"):
        return sentence.type, sentence.node_id, sentence.actor
    return (at,)


def _cycle(keys: Sequence[tuple[object, ...]], at: int) -> tuple[int, int]:
    """Return the shortest cycle that begins at a place, and how often it comes."""
    for length in range(1, _CYCLE_MAX + 1):
        cycle = keys[at : at + length]
        times = 1
        while keys[at + times * length : at + (times + 1) * length] == cycle:
            times += 1
        if times >= _TIMES_FOLDED_MIN:
            return length, times
    return 1, 1


def story_lines(story: Story, columns: int | None) -> Iterator[Line]:
    """Yield a story.

    Args:
        story: The story.
        columns: How wide the window is; None in a pipe, where each sentence is one line.
    """
    facts = [story.workflow_name, story.status.replace("_", " ")]
    if story.title is not None:
        facts.insert(0, story.run_id)
    yield ((escaped(story.title or story.run_id), "bold"),)
    yield ((escaped(f"  {', '.join(facts)}"), "dim"),)
    digits = len(str(max((each.event_seq for each in story.sentences), default=0)))
    day = ""
    for each in folded(story.sentences):
        at_ms = each.until_ms if isinstance(each, Fold) else each.at_ms
        today, clock = _split(at_ms)
        if today != day:
            day = today
            yield ()
            yield ((day, "bold"),)
        if isinstance(each, Fold):
            yield ((f"{'':>{digits + 4}}{_fold_words(each, clock)}", "dim"),)
            continue
        margin = f"  {each.event_seq:>{digits}}  {clock}  "
        first, *rest = wrapped(escaped(each.text), columns, indent=len(margin))
        yield ((margin, "dim"), (first, _style(each)))
        for text in rest:
            yield ((" " * len(margin), ""), (text, _style(each)))
    yield ()
    yield from _total_lines(story.totals)


def _split(at_ms: int) -> tuple[str, str]:
    """Return the day and the time of a moment."""
    day, time = day_and_time(at_ms)
    return day, time[:-_MS_CHARS]


def _fold_words(fold: Fold, clock: str) -> str:
    """Return what is said instead of repetitions."""
    what = "the same again" if fold.length == 1 else f"the same {fold.length} again"
    return f"… {what} {plural(fold.times, 'time')}, until {clock}"


def _style(sentence: Sentence) -> str:
    """Return how a sentence looks."""
    if sentence.outcome not in (None, "ok") or sentence.type in ("run.failed", "run.timed_out"):
        return "red"
    return "green" if sentence.type == "run.completed" else ""


def _total_lines(totals: Totals) -> Iterator[Line]:
    """Yield where the time went."""
    yield ((f"Where {duration(totals.wall_ms)} went", "bold"),)
    for label, name, words in _SHARES:
        spent_ms = int(getattr(totals, name))
        if spent_ms < _SHOWN_MS_MIN:
            continue
        share = f"{100 * spent_ms / totals.wall_ms:3.0f}%" if totals.wall_ms else "    "
        line = f"{duration(spent_ms):>12}  {share}  "
        yield ((f"  {label:<{_LABEL}}", ""), (line, ""), (words, "dim"))
