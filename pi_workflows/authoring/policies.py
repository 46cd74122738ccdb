"""What an author declares about a node beside its function: effects, retries, time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeAlias

from pi_workflows.authoring.context import Context
from pi_workflows.base.errors import PayloadInvalid, Problem
from pi_workflows.base.limits import NODE_TIMEOUT_DEFAULT_MS, NODE_TIMEOUT_MS_MAX
from pi_workflows.definition.snapshot import Recovery, RetriedOutcome, RetryPolicy

# The authors' callbacks take the context of whatever input the workflow has.
TimeLimit: TypeAlias = timedelta | Callable[[Context[Any]], timedelta | None] | None

TIMEOUT_DEFAULT: Final = timedelta(milliseconds=NODE_TIMEOUT_DEFAULT_MS)
_UNLIMITED_MS: Final = 0
_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class Effect:
    """What an action does to the world; made by `idempotent_effect` or `manual_effect`."""

    type: str
    recovery: Recovery


def idempotent_effect(effect_type: str) -> Effect:
    """Declare an effect that may be repeated: a read, or a write under `ctx.effect_key`.

    Args:
        effect_type: What is done, such as `preview.deploy`; 1-256 characters.

    Returns:
        The declaration for `action(effect=...)` or `shell(effect=...)`. After a crash in the middle
        the engine runs the callback again.
    """
    return Effect(effect_type, "idempotent")


def manual_effect(effect_type: str) -> Effect:
    """Declare an effect that must not be repeated unseen, such as sending a message.

    Args:
        effect_type: What is done, such as `mail.send`; 1-256 characters.

    Returns:
        The declaration for `action(effect=...)` or `shell(effect=...)`. After a crash in the middle
        the run stands still until a person has said what happened.
    """
    return Effect(effect_type, "manual")


@dataclass(frozen=True, slots=True)
class Retry:
    """Try the same visit again when it fails; each try counts in the workflow's `max_steps`.

    Attributes:
        max_attempts: Tries in all, the first included.
        on: The outcomes that are tried again: `failed`, `timed_out`.
        delay: Wall time before the second try.
        backoff: What each further delay is multiplied by, at least 1.
    """

    max_attempts: int = 3
    on: tuple[RetriedOutcome, ...] = ("failed", "timed_out")
    delay: timedelta = timedelta(0)
    backoff: float = 1.0


def retry_policy(retry: object) -> RetryPolicy | None:
    """Return the snapshot's form of a declared retry, or None when a part has the wrong type."""
    match retry:
        case Retry(
            max_attempts=int() as attempts,
            on=tuple() as outcomes,
            delay=timedelta() as delay,
            backoff=(int() | float()) as backoff,
        ) if (
            not isinstance(attempts, bool)
            and all(outcome in ("failed", "timed_out") for outcome in outcomes)
            and math.isfinite(backoff)
        ):
            return RetryPolicy(
                max_attempts=attempts,
                on=outcomes,
                delay_ms=delay // _MILLISECOND,
                backoff=float(backoff),
            )
        case _:
            return None


def fixed_timeout_ms(timeout: TimeLimit) -> int | None:
    """Return a budget in active milliseconds: 0 = unlimited, None = computed at the start."""
    if timeout is None:
        return _UNLIMITED_MS
    return -(-timeout // _MILLISECOND) if isinstance(timeout, timedelta) else None


def computed_timeout_ms(value: object) -> int:
    """Check what a timeout callable returned.

    Args:
        value: The callable's result.

    Returns:
        The budget in active milliseconds; 0 = unlimited.

    Raises:
        PayloadInvalid: It is neither None nor a positive timedelta within the bound (code
            `timeoutInvalid`).
    """
    if value is None:
        return _UNLIMITED_MS
    for problem in timeout_problems("", value):
        raise PayloadInvalid(problem.message, code=problem.code)
    assert isinstance(value, timedelta), value
    return -(-value // _MILLISECOND)


def timeout_problems(where: str, timeout: object) -> Iterator[Problem]:
    """Yield what is wrong with a declared or computed timeout."""
    if timeout is None or (callable(timeout) and not isinstance(timeout, type)):
        return
    if not isinstance(timeout, timedelta):
        yield Problem(
            "timeoutInvalid",
            where,
            f"timeout={timeout!r:.60}: use a timedelta, a function of the context,"
            " or None for no limit",
        )
    elif timeout <= timedelta(0):
        yield Problem(
            "timeoutInvalid",
            where,
            f"timeout={timeout}: use a positive time, or None for no limit",
        )
    elif timeout > timedelta(milliseconds=NODE_TIMEOUT_MS_MAX):
        yield Problem(
            "timeoutInvalid",
            where,
            f"timeout={timeout}: at most 30 days, or None for no limit",
        )
