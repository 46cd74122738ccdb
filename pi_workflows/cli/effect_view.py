"""One effect as a person looks at it who has to say what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.measures import age, duration, moment
from pi_workflows.cli.outline import value_line, value_lines
from pi_workflows.cli.output import Line, Output
from pi_workflows.cli.paragraph import wrapped
from pi_workflows.cli.table import ELLIPSIS, Cell, short_ids, write_table
from pi_workflows.protocol.effects import EffectChoice, EffectItem

STYLES: Final[Mapping[str, str]] = {
    "ambiguous": "bold magenta",
    "applying": "cyan",
    "applied": "green",
}
ID_CHARS_MIN: Final = 18
"""What is shown of an effect's ID in any case."""

_LABEL: Final = 9
_LINES_MAX: Final = 40
_EVIDENCE_CHARS: Final = 400
_WORDS: Final[Mapping[str, str]] = {
    "pending": "nothing of it is under way",
    "applying": "it is under way",
    "applied": "it happened",
    "rejected": "it did not happen",
    "ambiguous": "nobody knows whether it happened",
    "cancelled": "it is no longer wanted",
}
_RECOVERY: Final[Mapping[str, str]] = {
    "idempotent": "it may be repeated",
    "manual": "it must not be repeated unseen",
}
_ENDED: Final = frozenset({"completed", "failed", "timed_out", "cancelled"})


def write_effect(output: Output, item: EffectItem, values: Mapping[str, Json], now_ms: int) -> None:
    """Write everything that is known of an effect.

    Args:
        output: Where to.
        item: The effect.
        values: What its `request`, `output` and `progress` are, fetched.
        now_ms: The time by which ages are told.
    """
    output.styled(_about(item, now_ms))
    _write_value(output, "Asked for", values["request"])
    if item.tries:
        output.styled([(), (("Tries", "bold"),)])
        headings = ("  try", "began", "took", "outcome", "why")
        write_table(output, headings, list(_tries(item, now_ms)), numbers=frozenset({"  try"}))
    if item.last_error is not None:
        error = item.last_error
        _write_lines(output, "Last error", [escaped(f"{error.code}: {error.message}")])
    if values["output"] is not None:
        title = "What it gave" if item.status == "applied" else "What it had given so far"
        _write_value(output, title, values["output"])
    if values["progress"] is not None:
        _write_value(output, "What its step said last", values["progress"])
    if item.decisions:
        _write_lines(output, "Decided", list(_decisions(item)))
    if item.choices:
        output.styled(_choices(item, output.columns))
        name = short_ids(output, [item.effect_id], chars_min=ID_CHARS_MIN)[item.effect_id]
        command = f"effects resolve {name.removesuffix(ELLIPSIS)} confirm --evidence TEXT"
        _write_lines(output, "Next", [f"pi-workflows {command}"])


def standing_cell(item: EffectItem, now_ms: int) -> tuple[str, str]:
    """Return how an effect stands, with the time of its next try when that is still to come."""
    style = STYLES.get(item.status, "")
    due_ms = item.next_attempt_at
    if item.status != "pending" or due_ms is None or due_ms <= now_ms:
        return (item.status, style)
    return (f"{item.status}, in {age(due_ms - now_ms)}", style)


def choice_text(item: EffectItem, choice: EffectChoice) -> str:
    """Say what an answer would do to this effect and to its run.

    Args:
        item: The effect.
        choice: The answer.
    """
    once = " once it is resumed" if item.run_paused else ""
    match choice.action:
        case "confirm":
            words = "It happened."
            if choice.needs_result is not None:
                model = choice.needs_result.rpartition(".")[2]
                words += f" Give its result as the evidence: a JSON object, {model}."
            elif choice.run != "unchanged":
                words += " The evidence becomes its result; a JSON object is taken as the result."
            return f"{words} {_course(item, choice, once)}"
        case "retry":
            if choice.refused is not None:
                return "Not possible: the run has ended, and nothing would try again."
            return (
                f"Begin try {choice.attempt}{once}. If it did happen after all, it happens twice."
            )
        case "reject":
            failing = "" if choice.run == "unchanged" else f" {item.node_path} fails."
            return f"It did not happen and shall not.{failing} {_course(item, choice, once)}"


def _course(item: EffectItem, choice: EffectChoice, once: str) -> str:
    """Say what becomes of the run."""
    match choice.run:
        case "unchanged":
            return f"Only the record changes: the run is {item.run_status}."
        case "completed":
            return f"The run completes{once}."
        case "failed":
            return f"The run fails{once}."
        case "goesOn":
            place = "" if choice.next_node is None else f" at {choice.next_node}"
            return f"The run goes on{place}{once}."


def _about(item: EffectItem, now_ms: int) -> Iterator[Line]:
    """Yield what the effect is and where it stands."""
    yield ((escaped(f"{item.effect_type} of {item.node_path}"), "bold"),)
    yield _fact("effect", item.effect_id)
    status, style = standing_cell(item, now_ms)
    yield (_label("status"), (status, style), (f"  {_WORDS[item.status]}", ""))
    yield _fact("run", f"{item.run_id}, {_run(item)}")
    yield _fact("node", f"{item.node_path}, visit {item.visit}")
    yield _fact("type", f"{item.effect_type}, {item.recovery}: {_RECOVERY[item.recovery]}")
    yield _fact("created", f"{moment(item.created_at)}, {age(now_ms - item.created_at)} ago")
    if item.updated_at != item.created_at:
        yield _fact("changed", f"{moment(item.updated_at)}, {age(now_ms - item.updated_at)} ago")
    if item.next_attempt_at is not None and item.status == "pending":
        yield _fact("next try", f"{item.attempts + 1}, not before {moment(item.next_attempt_at)}")


def _run(item: EffectItem) -> str:
    """Say how the effect's run stands."""
    if item.run_status in _ENDED:
        return f"which is {item.run_status}"
    if item.run_paused:
        return "which is paused"
    if item.status == "ambiguous":
        return "which stands still until somebody says what happened"
    return f"which is {item.run_status}"


def _tries(item: EffectItem, now_ms: int) -> Iterator[list[Cell]]:
    """Yield the newest tries."""
    for each in item.tries:
        end_ms = each.finished_at if each.finished_at is not None else now_ms
        outcome = each.outcome or "under way"
        why = "" if each.error is None else f"{each.error.code}: {each.error.message}"
        yield [
            f"  {each.number}",
            moment(each.started_at),
            duration(end_ms - each.started_at),
            (outcome, STYLES.get(outcome, "")),
            why,
        ]


def _write_value(output: Output, title: str, value: Json) -> None:
    """Write a value under its title."""
    _write_lines(output, title, value_lines(value, lines_max=_LINES_MAX))


def _write_lines(output: Output, title: str, lines: Sequence[str]) -> None:
    """Write safe lines under their title. Evidence loses nothing where a window ends."""
    output.styled([(), ((title, "bold"),)])
    output.lines(f"  {line}" for line in lines)


def _decisions(item: EffectItem) -> Iterator[str]:
    """Yield what was decided before, the newest first."""
    for each in item.decisions:
        evidence = value_line(each.evidence, chars_max=_EVIDENCE_CHARS)
        yield f"{moment(each.at)}  {each.action} by {each.actor}: {evidence}"


def _choices(item: EffectItem, columns: int | None) -> Iterator[Line]:
    """Yield what may be said now."""
    yield ()
    yield (("What each answer does", "bold"),)
    for choice in item.choices:
        text = escaped(choice_text(item, choice))
        for index, line in enumerate(wrapped(text, columns, indent=_LABEL + 2)):
            label = choice.action if index == 0 else ""
            yield ((f"  {label:<{_LABEL}}", "bold"), (line, ""))


def _fact(label: str, text: str) -> Line:
    """Return one fact with its label."""
    return (_label(label), (escaped(text), ""))


def _label(label: str) -> tuple[str, str]:
    """Return a label."""
    return f"  {label:<{_LABEL}}", "dim"
