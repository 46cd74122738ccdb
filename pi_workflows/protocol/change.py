"""What a mirror took of one or several events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pi_workflows.protocol.deltas import Section
from pi_workflows.protocol.views import SubscriptionFailure


@dataclass(frozen=True, slots=True)
class Change:
    """What is different in a mirror.

    Attributes:
        is_snapshot: The whole view, or the whole list, was replaced.
        is_restored: The view, which was for showing only, is current again.
        is_display: What people are told changed: `display`, `live` or `possiblyInterrupted`.
        targets: The targets that changed since, such as `timeline/trace:tail`, with the newest
            revision of each.
        stale: The sections that are older than the view because of it.
        failure: Why the subscription tells nothing, for now or for good.
        fault: The code of what the server did wrong; what is mirrored is what was there before.
    """

    is_snapshot: bool = False
    is_restored: bool = False
    is_display: bool = False
    targets: Mapping[str, int] = field(default_factory=dict[str, int])
    stale: frozenset[Section] = frozenset()
    failure: SubscriptionFailure | None = None
    fault: str | None = None

    @property
    def is_end(self) -> bool:
        """Whether nothing more will come: the subscription failed for good."""
        return self.failure is not None and self.failure.reason_code != "connection_lost"

    def then(self, later: Change) -> Change:
        """Return this change and a later one as one.

        What a snapshot replaced is forgotten, and so is a failure that is over.
        """
        if later.is_snapshot:
            return later
        is_well = later.failure is None and later.fault is None
        return Change(
            is_snapshot=self.is_snapshot,
            is_restored=later.is_restored or (self.is_restored and is_well),
            is_display=self.is_display or later.is_display,
            targets={**self.targets, **later.targets},
            stale=self.stale | later.stale,
            failure=later.failure or (None if later.is_restored else self.failure),
            fault=later.fault or self.fault,
        )
