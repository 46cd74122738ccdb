"""Broken rules: of a file as the server tells them of its own database, and as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pi_workflows.protocol.state import Verification, Violation

if TYPE_CHECKING:
    from pi_workflows.audit.verification import Verification as FileVerification

_RUNS_SHOWN: Final = 5


def told(found: FileVerification) -> Verification:
    """Return what was found in a file as the server tells what it found in its own."""
    return Verification(
        valid=found.is_valid,
        checked=found.checked,
        violations=tuple(
            Violation(
                code=each.code,
                run_ids=each.run_ids,
                count=each.count,
                explanation=each.explanation,
            )
            for each in found.violations
        ),
        information=(),
    )


def violation_lines(violations: Sequence[Violation]) -> Iterator[str]:
    """Yield a line for each broken rule: its code, how often, what it means, whose it is."""
    for each in violations:
        runs = ", ".join(each.run_ids[:_RUNS_SHOWN])
        more = len(each.run_ids) - _RUNS_SHOWN
        named = f" Runs: {runs}{f' and {more} more' if more > 0 else ''}." if runs else ""
        yield f"  {each.code} ({each.count:,}): {each.explanation}.{named}"
