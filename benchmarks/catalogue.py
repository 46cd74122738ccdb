"""Every metric by its fixed name, and what measures it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from benchmarks import commands, pushing, rebuilding, verifying
from benchmarks.figure import Figure
from benchmarks.setting import Setting

Measure: TypeAlias = Callable[[Setting], list[Figure]]

METRICS: Final[Mapping[str, Measure]] = {
    **{commands.metric(count): commands.measure(count) for count in commands.CLIENTS},
    commands.LATENCY: commands.latency,
    **{pushing.metric(count): pushing.measure(count) for count in pushing.SUBSCRIBERS},
    pushing.OTHERS: pushing.others,
    pushing.SATURATED: pushing.saturated,
    rebuilding.DOMAIN_ONLY: rebuilding.domain_only,
    verifying.QUICK_SMALL: verifying.quick_small,
    verifying.QUICK_BLOBS: verifying.quick_blobs,
    verifying.FULL_SMALL: verifying.full_small,
}
