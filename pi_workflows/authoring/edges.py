"""The ways from node to node that authors write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Literal, TypeVar, cast

from pi_workflows.base.errors import PayloadInvalid, Problem
from pi_workflows.definition.selector import case_text
from pi_workflows.definition.snapshot import Edge

_MILLISECOND: Final = timedelta(milliseconds=1)

CaseT = TypeVar("CaseT", bound=str | bool | int | float | None)


@dataclass(frozen=True, slots=True)
class Way:
    """What `edge` and `switch` return: an edge of the definition, and the mistakes in it.

    Attributes:
        edge: The edge; None when a part of it has the wrong type.
        problems: What is wrong with it, each with its place.
        chooser: What its source has to be, when it looks at that one's choice.
    """

    edge: Edge | None
    problems: tuple[Problem, ...]
    chooser: Literal["decision", "human_decision"] | None = None


def edge(source: str, target: str, *, delay: timedelta | str | None = None) -> Way:
    """Lead from a node to the next one.

    Args:
        source: The name of the node that ends.
        target: The name of the node that follows.
        delay: How long the run waits in between, in wall time and without a process: a duration of
            at most 7 days, or `$.field` where the output of `source` holds it in milliseconds. A
            resume ends the wait.

    Returns:
        The edge, for `define_workflow(edges=...)`.
    """
    problems = [*_name_problems("edges", source), *_name_problems(f"edges.{source}", target)]
    waits = cast("object", delay)
    if not isinstance(waits, timedelta | str | None):
        problems.append(
            Problem(
                "edgeDelayInvalid",
                f"edges.{source}",
                f"delay is {waits!r:.60}: use a timedelta, or '$.field' for milliseconds in the"
                " output",
            )
        )
    if problems:
        return Way(None, tuple(problems))
    stored = -(-delay // _MILLISECOND) if isinstance(delay, timedelta) else delay
    return Way(Edge(source=source, to=target, delay=stored), ())


def switch(source: str, *, on: str, cases: Mapping[CaseT, str]) -> Way:
    """Lead from a node to one of several, by a value of its output or by how it ended.

    Args:
        source: The name of the node that ends.
        on: `$.field` or `$output.field` for a value in the output, `$result.outcome` for how the
            node ended. Only the latter is followed when the node failed or timed out.
        cases: The next node by value. Values are compared as JSON text: `True` is the same case as
            `"true"`. A value without a case fails the run.

    Returns:
        The edge, for `define_workflow(edges=...)`.
    """
    where = f"edges.{source}"
    problems = [*_name_problems("edges", source)]
    selector = cast("object", on)
    if not isinstance(selector, str):
        problems.append(
            Problem("switchPathInvalid", where, f"on is {selector!r:.60}: write '$.field'")
        )
    given = cast("object", cases)
    if not isinstance(given, Mapping):
        problems.append(Problem("switchCaseInvalid", where, "cases maps values to names of nodes"))
        return Way(None, tuple(problems))
    texts: dict[str, str] = {}
    problems.extend(_collect_cases(where, cases, texts))
    if not isinstance(selector, str) or not isinstance(cast("object", source), str):
        return Way(None, tuple(problems))
    # With a mistake in one case the others still lead somewhere: their targets are not unreachable.
    return Way(Edge(source=source, on=selector, cases=texts), tuple(problems))


def decision_edge(source: str, *, cases: Mapping[str, str]) -> Way:
    """Lead from a model's decision to one of several nodes, by its choice.

    Args:
        source: The name of the `decision`.
        cases: The next node by choice: each of the decision's choices once, and no other.

    Returns:
        The edge, for `define_workflow(edges=...)`, which refuses a missing or an extra case.
    """
    return replace(switch(source, on="$", cases=cases), chooser="decision")


def human_decision_edge(source: str, *, cases: Mapping[str, str]) -> Way:
    """Lead from a person's decision to one of several nodes, by its choice.

    Args:
        source: The name of the `human_decision`.
        cases: The next node by the ID of the choice: each once, and no other.

    Returns:
        The edge, for `define_workflow(edges=...)`, which refuses a missing or an extra case.
    """
    return replace(switch(source, on="$", cases=cases), chooser="human_decision")


def _collect_cases(
    where: str, cases: Mapping[CaseT, str], texts: dict[str, str]
) -> Iterator[Problem]:
    """Fill `texts` with the cases that are sound; yield what is wrong with the others."""
    for value, target in cases.items():
        try:
            text = case_text(value)
        except PayloadInvalid:
            yield Problem(
                "switchCaseInvalid",
                where,
                f"case {value!r:.60}: use text, a number, True, False or None",
            )
            continue
        if text in texts:
            yield Problem(
                "switchCaseTwice",
                where,
                f"case {text!r} stands twice: values are compared as JSON text",
            )
        faults = [*_name_problems(where, target)]
        yield from faults
        if not faults:
            texts[text] = target


def _name_problems(where: str, name: object) -> Iterator[Problem]:
    if not isinstance(name, str):
        yield Problem("edgeInvalid", where, f"{name!r:.60} is no name: edges join nodes by name")
