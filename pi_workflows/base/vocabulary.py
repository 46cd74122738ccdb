"""Words that programs send and people type, defined once where the command line may read them.

It loads neither the protocol's models nor the domain before it knows what it was asked for.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

DisplayStatus: TypeAlias = Literal[
    "queued",
    "running",
    "waiting",
    "paused",
    "ambiguous",
    "completed",
    "failed",
    "timed_out",
    "cancelled",
]
"""What a person is told about a run."""

WindowKind: TypeAlias = Literal[
    "steps",
    "trace",
    "trace_at_step",
    "updates",
    "settings",
    "follow_ups",
    "workflow_messages",
    "session_entries",
    "session_events",
]
"""What a window of a run holds. The cursor of `trace_at_step` is a step; of `trace` a `seq`."""

PageKind: TypeAlias = Literal[WindowKind, "aggregate"]
"""What a page of a run holds: a window, or a reference to `aggregate`.

That is `pi-workflows.run-aggregate.v1`: the newest output and result of every node and the run's
output, complete. A newer one that somebody asks for may end it: then its content is missing, and
the page is asked for again.
"""
