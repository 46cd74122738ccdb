"""Whether a settled attempt is tried again, and after how long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base.limits import (
    RETRY_ATTEMPTS_MAX,
    RETRY_BACKOFF_MAX,
    RETRY_DELAY_MS_MAX,
)
from pi_workflows.definition.retry import retry_delay_ms
from pi_workflows.definition.selector import NodeOutcome
from pi_workflows.definition.snapshot import EffectPolicy, Node, RetryPolicy


@st.composite
def policies(draw: st.DrawFn) -> RetryPolicy:
    """Any retry that a definition may declare."""
    return RetryPolicy(
        max_attempts=draw(st.integers(1, RETRY_ATTEMPTS_MAX)),
        on=draw(st.sampled_from([("failed",), ("timed_out",), ("failed", "timed_out")])),
        delay_ms=draw(st.integers(0, RETRY_DELAY_MS_MAX)),
        backoff=draw(st.floats(1, RETRY_BACKOFF_MAX)),
    )


def retried(**changes: object) -> Node:
    """A compute node tried three times in all, 10 s apart, the second delay doubled."""
    policy = RetryPolicy(max_attempts=3, on=("failed",), delay_ms=10_000, backoff=2.0)
    return Node(type="compute", timeout_ms=0, retry=policy.model_copy(update=changes))


@pytest.mark.parametrize(
    ("outcome", "tries", "delay_ms"),
    [
        ("failed", 1, 10_000),
        ("failed", 2, 20_000),
        ("failed", 3, None),
        ("timed_out", 1, None),
        ("cancelled", 1, None),
        ("ok", 1, None),
    ],
)
def test_retry_table(outcome: NodeOutcome, tries: int, delay_ms: int | None) -> None:
    """A retry is due for a named outcome while tries are left, each after a longer delay."""
    assert retry_delay_ms(retried(), outcome, tries) == delay_ms


def test_a_node_without_retry_is_never_tried_again() -> None:
    """Only a declared retry is one."""
    assert retry_delay_ms(Node(type="compute"), "failed", 1) is None


def test_a_manual_effect_is_never_tried_again() -> None:
    """Even a snapshot that declares it cannot repeat what a person must look at."""
    manual = EffectPolicy(type="mail.send", recovery="manual")
    node = retried().model_copy(update={"type": "action", "effect": manual})
    assert retry_delay_ms(node, "failed", 1) is None


def test_no_delay_means_at_once() -> None:
    """A delay of zero is a retry without waiting, not no retry."""
    assert retry_delay_ms(retried(delay_ms=0), "failed", 1) == 0


@pytest.mark.slow
@given(policy=policies(), tries=st.integers(1, RETRY_ATTEMPTS_MAX + 1))
def test_delays_grow_within_their_bound(policy: RetryPolicy, tries: int) -> None:
    """A delay never shrinks, never passes seven days, and exists exactly while tries are left."""
    node = Node(type="compute", retry=policy)
    for outcome in ("failed", "timed_out"):
        delay = retry_delay_ms(node, outcome, tries)
        if outcome not in policy.on or tries >= policy.max_attempts:
            assert delay is None
            continue
        assert delay is not None
        assert policy.delay_ms <= delay <= RETRY_DELAY_MS_MAX
        if tries > 1:
            before = retry_delay_ms(node, outcome, tries - 1)
            assert before is not None
            assert before <= delay
