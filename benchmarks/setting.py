"""Where the families measure, and the databases that they share."""

from __future__ import annotations

import random
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from benchmarks.anchor import Anchor
from benchmarks.service import Service, service
from benchmarks.workload import STEPS, database
from pi_workflows.base.canonical import Json

_SMALL_RUNS: Final = 640
_BLOB_RUNS: Final = 128
# Two quotation marks belong to the value of 64 KiB.
_BLOB_BYTES: Final = 64 * 1_024 - 2
_SEED: Final = 20_260_101


@dataclass(frozen=True)
class Setting:
    """What every family is handed.

    Attributes:
        directory: An empty directory of this run of the program, which it removes.
        scale: Factor on the size of everything that is measured; 1 gives the figures that count.
        anchor: The raw library on the same disk, for one round beside each measured one.
        end: What happens when everything is measured.
    """

    directory: Path
    scale: float
    anchor: Anchor
    end: ExitStack

    @cached_property
    def small_rows(self) -> Path:
        """A database whose values have some 30 bytes each, 14,000 events at scale 1."""
        return database(self.directory / "small", self._count(_SMALL_RUNS), _small)

    @cached_property
    def large_blobs(self) -> Path:
        """A database whose steps give 64 KiB each, 84 MiB at scale 1."""
        drawn = random.Random(_SEED)  # noqa: S311 - any text will do, as long as it is the same

        def large(_run_id: str, _number: int) -> Json:
            return drawn.randbytes(_BLOB_BYTES // 2).hex()

        return database(self.directory / "blobs", self._count(_BLOB_RUNS), large)

    @cached_property
    def service(self) -> Service:
        """A server of its own directory, which ends when everything is measured."""
        return self.end.enter_context(service(self.directory))

    def even(self, at_scale_1: int) -> int:
        """Return an even number of commands, at least two."""
        return 2 * max(1, round(at_scale_1 * self.scale / 2))

    def _count(self, at_scale_1: int) -> int:
        """Return how many runs a database has."""
        return max(1, round(at_scale_1 * self.scale))


def _small(run_id: str, number: int) -> Json:
    """Return an output that no other step has."""
    return {"run": run_id, "step": number % (STEPS + 2)}
