"""Whether a settled attempt is tried again, and after how long."""

from __future__ import annotations

from pi_workflows.base.limits import RETRY_DELAY_MS_MAX
from pi_workflows.definition.route import APPROVAL_STALE
from pi_workflows.definition.selector import NodeOutcome
from pi_workflows.definition.snapshot import Node


def retry_delay_ms(
    node: Node, outcome: NodeOutcome, tries: int, failure_code: str | None = None
) -> int | None:
    """Decide on a retry (the engine contract, "Retries").

    Args:
        node: The node whose attempt settled.
        outcome: How it ended.
        tries: The settled attempts of this visit, this one included.
        failure_code: Why it failed; what a person has to approve anew is not tried again before.

    Returns:
        Milliseconds until the next attempt of the same visit may start, or None when no retry is
        due.
    """
    assert tries > 0, tries
    policy = node.retry
    if policy is None or outcome not in policy.on or tries >= policy.max_attempts:
        return None
    if node.approved_by is not None and failure_code == APPROVAL_STALE:
        return None
    if node.effect is not None and node.effect.recovery == "manual":
        return None
    delay_ms = float(policy.delay_ms)
    # Multiplied step by step, so that no exponent overflows and each step is held to the bound.
    for _ in range(tries - 1):
        delay_ms = min(delay_ms * policy.backoff, RETRY_DELAY_MS_MAX)
    return round(delay_ms)
