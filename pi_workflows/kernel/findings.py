"""What a verification found: codes, how often, and which runs it concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from pi_workflows.base.limits import VIOLATION_RUNS_MAX

# Violations of one code whose runs are looked for; of the others only the number counts.
_LOOKUPS_MAX: Final = 1_000


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that does not hold.

    Attributes:
        code: A stable identifier (state contract, section 5).
        run_ids: The runs it concerns, at most 100, as they were found.
        count: How many rows violate it.
        explanation: One line for people, without anything that is stored as content.
    """

    code: str
    run_ids: tuple[str, ...]
    count: int
    explanation: str


@dataclass(slots=True)
class _Found:
    """Violations of one code."""

    explanation: str
    count: int = 0
    run_ids: dict[str, None] = field(default_factory=dict[str, None])


class Findings:
    """Collects violations by code, in memory that does not grow with their number."""

    def __init__(self) -> None:
        self._found: dict[str, _Found] = {}

    def add(
        self, code: str, explanation: str, runs: Callable[[], Iterable[str]] = tuple[str]
    ) -> None:
        """Note one violation.

        Args:
            code: Its code.
            explanation: One line; that of a code's first violation is the one that is shown.
            runs: Looks for the runs that it concerns; not called when enough are named.
        """
        found = self._found.setdefault(code, _Found(explanation))
        found.count += 1
        if found.count > _LOOKUPS_MAX or len(found.run_ids) >= VIOLATION_RUNS_MAX:
            return
        for run_id in runs():
            if len(found.run_ids) < VIOLATION_RUNS_MAX:
                found.run_ids[run_id] = None

    def __contains__(self, code: object) -> bool:
        return code in self._found

    def violations(self) -> tuple[Violation, ...]:
        """Return what was noted, code by code as each was found first."""
        return tuple(
            Violation(code, tuple(found.run_ids), found.count, found.explanation)
            for code, found in self._found.items()
        )
