"""A track of progress as it was published, for the estimate of its end."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import TRACK_ACCOUNTS_MAX
from pi_workflows.base.sql import Read, load
from pi_workflows.views.estimate import Estimate, Observation, estimate

SQL: Final = load(__package__, "pages.sql")


class _Account(NamedTuple):
    at_ms: int
    data: bytes


def track_estimate(read: Read, run_id: str, key: str) -> Estimate | None:
    """Estimate when a track of a run's progress will be done.

    Args:
        read: The view's read.
        run_id: The run.
        key: The key under which its progress is published.

    Returns:
        The estimate; None when there is none to make.
    """
    accounts = read.all(
        _Account,
        SQL["track"],
        run_id=run_id,
        update_key=key,
        accounts_max=TRACK_ACCOUNTS_MAX,
    )
    return estimate([_observation(account) for account in reversed(accounts)])


def _observation(account: _Account) -> Observation:
    """Return what one account says; whoever published it was held to the form of progress."""
    data = canonical.decode(account.data)
    members = data if isinstance(data, dict) else {}
    return Observation(
        at_ms=account.at_ms,
        status=str(members.get("status", "unknown")),
        phase=_text(members.get("phase")),
        unit=_text(members.get("unit")),
        completed=_number(members.get("completed")),
        total=_number(members.get("total")),
        source_finish_ms=_moment(members.get("sourceEstimatedFinishAt")),
        source_updated_ms=_moment(members.get("sourceUpdatedAt")),
    )


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def _number(value: Json) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and isinstance(value, int | float) else None


def _moment(value: Json) -> int | None:
    """Return a time of RFC 3339 in milliseconds since the epoch."""
    try:
        return round(datetime.fromisoformat(str(value)).timestamp() * 1_000) if value else None
    except (ValueError, OverflowError):
        return None
