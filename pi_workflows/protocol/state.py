"""The stored state as a whole: payloads and answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pi_workflows.protocol.wire import (
    AbsolutePath,
    Count,
    Id,
    Many,
    Maybe,
    Payload,
    Text,
    WireModel,
)


class StateBackup(Payload):
    """`state.backup`: a complete copy in a file that does not exist yet."""

    destination: AbsolutePath


class Violation(WireModel):
    """A rule that stored facts break.

    Which runs, how often, and what it means. Nothing is repaired.
    """

    code: Text
    run_ids: Many[Id]
    count: Count
    explanation: Text


class StateCounts(WireModel):
    """How much of each is stored."""

    resources: Count
    runs: Count
    resource_managers: Count
    decisions: Count
    settings_scopes: Count
    pending_interactions: Count
    pending_follow_ups: Count
    active_leases: Count
    unsettled_effects: Count


class StateStatus(WireModel):
    """Answer of `state.status`: the violations that can be found without replay and digests."""

    size_bytes: Count
    wal_bytes: Count
    free_pages: Count
    counts: StateCounts
    violations: Many[Violation]
    violations_partial: Maybe[bool] = None


class Verification(WireModel):
    """Answer of `state.verify`. A completed check is `accepted` also when it found violations.

    `checked` names what was looked at; `information` is worth knowing and breaks no rule.
    """

    valid: bool
    checked: Many[Text]
    violations: Many[Violation]
    information: Many[Violation]


class BackedUp(WireModel):
    """Receipt of `state.backup`."""

    destination: AbsolutePath
    file_bytes: Annotated[Count, Field(alias="bytes")]
