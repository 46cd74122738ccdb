"""What the operations work with: everything that `compose` put together, under one name each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from pi_workflows.base.clock import Clock
from pi_workflows.kernel.projectors import Projectors
from pi_workflows.server.claims import HeldRun
from pi_workflows.server.coordinators import Coordinators
from pi_workflows.server.deadlines import Deadlines
from pi_workflows.server.hub import Hub
from pi_workflows.server.log import ServerLog
from pi_workflows.server.long_work import LongWork
from pi_workflows.server.measurements import Measurements
from pi_workflows.server.operator import Operator
from pi_workflows.server.paths import StateDirectory
from pi_workflows.server.resolver import Resolver
from pi_workflows.server.stop import Stop
from pi_workflows.server.turns import Turns
from pi_workflows.server.writer import Writer
from pi_workflows.store.database import Store


class Runners(Protocol):
    """What the operations ask the supervisor for."""

    @property
    def runs(self) -> Mapping[str, HeldRun]:
        """The runs that are worked on."""
        ...

    def live_runs(self) -> frozenset[str]:
        """Return the runs whose exact process lives under an unexpired claim."""
        ...


@dataclass(frozen=True, slots=True)
class Services:
    """The parts of a running server.

    Attributes:
        state: Its directory.
        store: The database, for reads.
        writer: The only way to write.
        projectors: What a verification replays with.
        hub: Who is told of changes.
        coordinators: Who speaks for which Pi session.
        turns: The open turns of sessions.
        clock: Wall and monotonic time.
        log: The server's log.
        resolver: Where workflow code is loaded.
        operator: Judges the passphrase.
        deadlines: Closes decisions whose time is over.
        runners: The runs that execute.
        runners_max: How many may.
        long_work: Commands that outlive their client.
        measurements: Figures from earlier requests.
        stop: The end of the server.
        connections: Says how many clients are connected.
        epoch: The server's epoch.
        host_id: The server's identity as an actor.
        package_version: Our own version.
    """

    state: StateDirectory
    store: Store
    writer: Writer
    projectors: Projectors
    hub: Hub
    coordinators: Coordinators
    turns: Turns
    clock: Clock
    log: ServerLog
    resolver: Resolver
    operator: Operator
    deadlines: Deadlines
    runners: Runners
    runners_max: int
    long_work: LongWork
    measurements: Measurements
    stop: Stop
    connections: Callable[[], int]
    epoch: int
    host_id: str
    package_version: str
