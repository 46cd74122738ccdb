"""The parts of a server, put together: the only place where the kernel meets the projections.

Tests hand in another clock, another way to start runners, and memory streams instead of a socket.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

import trio

from pi_workflows.base import ids
from pi_workflows.base.clock import Clock
from pi_workflows.base.limits import SERVER_CLAIM_MS
from pi_workflows.kernel.dispatch import Host
from pi_workflows.kernel.group import Kernel
from pi_workflows.server import process
from pi_workflows.server.authority import ConnectionKind, Speaker
from pi_workflows.server.hub import Hub
from pi_workflows.server.idle import Idle
from pi_workflows.server.launch import RunnerProgram, Starter
from pi_workflows.server.listener import Listener
from pi_workflows.server.log import ServerLog
from pi_workflows.server.long_work import LongWork
from pi_workflows.server.measurements import Measurements
from pi_workflows.server.operations import views
from pi_workflows.server.operations.table import answer
from pi_workflows.server.paths import StateDirectory
from pi_workflows.server.recovery import Recovery
from pi_workflows.server.registry import Registry
from pi_workflows.server.resolver import Resolver
from pi_workflows.server.scheduler import Scheduler
from pi_workflows.server.services import Services
from pi_workflows.server.session import Session
from pi_workflows.server.settings import Settings
from pi_workflows.server.stop import Stop
from pi_workflows.server.supervisor import Supervisor
from pi_workflows.server.timers import Timers
from pi_workflows.server.writer import Writer
from pi_workflows.store.database import Store
from pi_workflows.store.volatile import ServerClaim, take_server_epoch
from projections import route


@dataclass(frozen=True, slots=True)
class Parts:
    """A server that is put together and does nothing yet.

    Attributes:
        services: What its operations work with.
        recovery: What comes first.
        scheduler: Gives runners to due runs.
        supervisor: Looks after runners.
        timers: Heartbeats, renewals, samples.
        listener: Accepts connections.
        idle: Notices that nobody needs it.
    """

    services: Services
    recovery: Recovery
    scheduler: Scheduler
    supervisor: Supervisor
    timers: Timers
    listener: Listener
    idle: Idle


def compose(
    state: StateDirectory,
    settings: Settings,
    *,
    clock: Clock,
    log: ServerLog,
    starter: Starter | None = None,
) -> Parts:
    """Open the database, take the next epoch, and put the parts together.

    Args:
        state: The state directory, whose lock the caller holds.
        settings: What the server is told from outside.
        clock: Wall and monotonic time.
        log: The server's log.
        starter: Starts runners; the runner program when None.

    Returns:
        The parts. The store is open; `lifetime.run` closes it.

    Raises:
        Incompatible: The database is not ours.
        Corrupt: The database is damaged.
        Unavailable: The disk is full or failed.
    """
    now_ms = clock.now_ms()
    store = Store.open(state.root, now_ms=now_ms, app_version=settings.package_version)
    try:
        host = _take_epoch(store, now_ms)
        return _parts(
            state, settings, store=store, host=host, clock=clock, log=log, starter=starter
        )
    except BaseException:
        store.crash()
        raise


def _take_epoch(store: Store, now_ms: int) -> Host:
    """Claim the database: the lock proves that no other server lives."""
    pid = os.getpid()
    known = process.facts(pid)
    assert known is not None, "a process that does not see itself"
    claim = ServerClaim(
        host_id=ids.random_id("host"),
        token=ids.random_token(),
        pid=pid,
        process_start_identity=f"{process.boot_id()}/{known.start_time}",
        expires_at_ms=now_ms + SERVER_CLAIM_MS,
    )
    with store.transaction() as tx:
        return Host(claim.host_id, take_server_epoch(tx, claim, now_ms))


def _parts(
    state: StateDirectory,
    settings: Settings,
    *,
    store: Store,
    host: Host,
    clock: Clock,
    log: ServerLog,
    starter: Starter | None,
) -> Parts:
    """Put the parts together around an open store."""
    writer = Writer(Kernel(store, route, host), store, clock, log)
    registry = Registry(state.children)
    hub = Hub()
    idle = Idle(lambda: _is_busy(services, scheduler))
    supervisor = Supervisor(
        writer=writer,
        store=store,
        starter=starter or RunnerProgram(registry, settings.environment),
        clock=clock,
        log=log,
        host_id=host.host_id,
        epoch=host.epoch,
        changed=lambda run_id: _process_changed(hub, idle, run_id),
    )
    scheduler = Scheduler(
        supervisor=supervisor,
        writer=writer,
        store=store,
        clock=clock,
        log=log,
        host_id=host.host_id,
        runners_max=settings.runners_max,
    )
    resolver = Resolver(
        registry,
        definitions=state.definitions,
        environment=settings.environment,
        log=log,
        changed=idle.touch,
    )
    services = Services(
        state=state,
        store=store,
        writer=writer,
        projectors=route,
        hub=hub,
        clock=clock,
        log=log,
        resolver=resolver,
        runners=supervisor,
        runners_max=settings.runners_max,
        long_work=LongWork(),
        measurements=Measurements(),
        stop=Stop(),
        connections=lambda: listener.connection_count,
        epoch=host.epoch,
        package_version=settings.package_version,
    )
    listener = Listener(_session_opener(services), log, idle.touch)
    writer.observe(scheduler.observe)
    writer.observe(hub.observe)
    writer.observe(lambda answers: idle.touch() if any(each.events for each in answers) else None)
    return Parts(
        services=services,
        recovery=Recovery(
            store=store,
            writer=writer,
            registry=registry,
            clock=clock,
            log=log,
            host_id=host.host_id,
        ),
        scheduler=scheduler,
        supervisor=supervisor,
        timers=Timers(
            runs=supervisor,
            writer=writer,
            clock=clock,
            log=log,
            epoch=host.epoch,
        ),
        listener=listener,
        idle=idle,
    )


def _session_opener(services: Services) -> Callable[[trio.abc.Stream, str], Session]:
    """Return what makes the session of an accepted connection: a control connection at first."""

    def open_session(stream: trio.abc.Stream, connection_id: str) -> Session:
        return Session(
            stream,
            connection_id=connection_id,
            speaker=Speaker(ConnectionKind.CONTROL),
            package_version=services.package_version,
            answer=lambda request, session: answer(services, request, session),
            build=lambda subscription: views.news(services, subscription),
            hub=services.hub,
            log=services.log,
        )

    return open_session


def _process_changed(hub: Hub, idle: Idle, run_id: str) -> None:
    """Tell who watches a run that its process began or ended."""
    hub.process_changed(run_id)
    idle.touch()


def _is_busy(services: Services, scheduler: Scheduler) -> bool:
    """Whether anybody needs the server: a client, a child, work that is due now or later."""
    return (
        services.connections() > 0
        or services.resolver.child_count > 0
        or services.long_work.active > 0
        or not scheduler.is_idle
    )
