"""What a switch looks at, `$.a.b`, `$output.a` or `$result.outcome`, and what its cases compare."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pi_workflows.base import canonical

Scalar: TypeAlias = bool | int | float | str | None

NodeOutcome: TypeAlias = Literal["ok", "failed", "timed_out", "cancelled"]
# The outcomes that a route may follow; a cancelled node ends its run.
ROUTED_OUTCOMES: Final = ("ok", "failed", "timed_out")


@dataclass(frozen=True, slots=True)
class Selector:
    """A parsed `on` of a switch.

    Attributes:
        source: The node's output, or how the node ended.
        path: Member names from the output's root; for a result, `("outcome",)`.
    """

    source: Literal["output", "result"]
    path: tuple[str, ...]


def parse_selector(text: str) -> Selector | None:
    """Return what a switch looks at, or None when the text is none of the known forms."""
    head, dot, tail = text.partition(".")
    path = tuple(tail.split(".")) if dot else ()
    if not all(path):
        return None
    match head:
        case "$" | "$output":
            return Selector("output", path)
        case "$result" if path == ("outcome",):
            return Selector("result", path)
        case _:
            return None


def case_text(value: Scalar) -> str:
    """Return a scalar as a case compares it: text as it is, else its JSON; `True` is `"true"`."""
    return value if isinstance(value, str) else canonical.encode(value).decode()
