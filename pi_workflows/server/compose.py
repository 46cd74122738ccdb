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
from pi_workflows.server.coordinators import Coordinators
from pi_workflows.server.deadlines import Deadlines
from pi_workflows.server.ends import Ends
from pi_workflows.server.hub import Hub
from pi_workflows.server.idle import Idle
from pi_workflows.server.launch import RunnerProgram, Starter
from pi_workflows.server.listener import Listener
from pi_workflows.server.log import ServerLog
from pi_workflows.server.long_work import LongWork
from pi_workflows.server.measurements import Measurements
from pi_workflows.server.operations import views
from pi_workflows.server.operations.table import answer
from pi_workflows.server.operator import Operator
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
from pi_workflows.server.turns import Turns
from pi_workflows.server.writer import Writer
from pi_workflows.store.database import Store
from pi_workflows.store.volatile import ServerClaim, take_server_epoch
from pi_workflows.views.session_view import session_of_run
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
        ends: Tells sessions that their runs have ended.
    """

    services: Services
    recovery: Recovery
    scheduler: Scheduler
    supervisor: Supervisor
    timers: Timers
    listener: Listener
    idle: Idle
    ends: Ends


@dataclass(frozen=True, slots=True)
class _Ground:
    """What every part stands on."""

    state: StateDirectory
    settings: Settings
    store: Store
    host: Host
    clock: Clock
    log: ServerLog
    writer: Writer
    registry: Registry


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
        The parts. The store is open; `Lifetime.run` closes it.

    Raises:
        Incompatible: The database is not ours.
        Corrupt: The database is damaged.
        Unavailable: The disk is full or failed.
    """
    now_ms = clock.now_ms()
    store = Store.open(state.root, now_ms=now_ms, app_version=settings.package_version)
    try:
        host = _take_epoch(store, now_ms)
        writer = Writer(Kernel(store, route, host), store, clock, log)
        registry = Registry(state.children)
        ground = _Ground(state, settings, store, host, clock, log, writer, registry)
        return _parts(ground, starter or RunnerProgram(registry, settings.environment))
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


def _parts(ground: _Ground, starter: Starter) -> Parts:
    """Put the parts together around an open store."""
    hub = Hub(_session_reader(ground.store))
    idle = Idle(lambda: _is_busy(services, scheduler))
    supervisor = Supervisor(
        writer=ground.writer,
        store=ground.store,
        starter=starter,
        clock=ground.clock,
        log=ground.log,
        host_id=ground.host.host_id,
        epoch=ground.host.epoch,
        changed=lambda run_id: _process_changed(hub, idle, run_id),
    )
    scheduler = Scheduler(
        supervisor=supervisor,
        writer=ground.writer,
        store=ground.store,
        clock=ground.clock,
        log=ground.log,
        host_id=ground.host.host_id,
        runners_max=ground.settings.runners_max,
    )
    services = _services(ground, hub, idle, supervisor, lambda: listener.connection_count)
    listener = Listener(_session_opener(services), ground.log, idle.touch)
    ground.writer.observe(scheduler.observe)
    ground.writer.observe(services.deadlines.observe)
    ground.writer.observe(services.turns.observe)
    ends = Ends(
        writer=ground.writer, store=ground.store, log=ground.log, host_id=ground.host.host_id
    )
    ground.writer.observe(ends.observe)
    ground.writer.observe(hub.observe)
    return Parts(
        services=services,
        recovery=_recovery(ground),
        scheduler=scheduler,
        supervisor=supervisor,
        timers=_timers(ground, supervisor),
        listener=listener,
        idle=idle,
        ends=ends,
    )


def _services(
    ground: _Ground,
    hub: Hub,
    idle: Idle,
    supervisor: Supervisor,
    connections: Callable[[], int],
) -> Services:
    """Return what the operations work with."""
    resolver = Resolver(
        ground.registry,
        definitions=ground.state.definitions,
        environment=ground.settings.environment,
        log=ground.log,
        changed=idle.touch,
    )
    deadlines = Deadlines(
        writer=ground.writer,
        store=ground.store,
        clock=ground.clock,
        log=ground.log,
        host_id=ground.host.host_id,
        closed=idle.touch,
    )
    coordinators = Coordinators(lambda session_id: _session_changed(hub, turns, session_id))
    turns = Turns(
        coordinators=coordinators,
        writer=ground.writer,
        store=ground.store,
        clock=ground.clock,
        log=ground.log,
        host_id=ground.host.host_id,
        changed=hub.process_changed,
        session_due=hub.session_changed,
    )
    return Services(
        state=ground.state,
        store=ground.store,
        writer=ground.writer,
        projectors=route,
        hub=hub,
        coordinators=coordinators,
        turns=turns,
        clock=ground.clock,
        log=ground.log,
        resolver=resolver,
        operator=Operator(ground.state.operator, ground.clock, ground.log),
        deadlines=deadlines,
        runners=supervisor,
        runners_max=ground.settings.runners_max,
        long_work=LongWork(),
        measurements=Measurements(),
        stop=Stop(),
        connections=connections,
        epoch=ground.host.epoch,
        host_id=ground.host.host_id,
        package_version=ground.settings.package_version,
    )


def _recovery(ground: _Ground) -> Recovery:
    """Return what comes first."""
    return Recovery(
        store=ground.store,
        writer=ground.writer,
        registry=ground.registry,
        clock=ground.clock,
        log=ground.log,
        host_id=ground.host.host_id,
    )


def _timers(ground: _Ground, supervisor: Supervisor) -> Timers:
    """Return the server's clockwork."""
    return Timers(
        runs=supervisor,
        writer=ground.writer,
        clock=ground.clock,
        log=ground.log,
        epoch=ground.host.epoch,
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
            coordinators=services.coordinators,
            log=services.log,
        )

    return open_session


def _session_reader(store: Store) -> Callable[[str], str | None]:
    """Return what reads which session a run reserves."""

    def session_of(run_id: str) -> str | None:
        with store.snapshot() as read:
            return session_of_run(read, run_id)

    return session_of


def _session_changed(hub: Hub, turns: Turns, session_id: str) -> None:
    """Tell who watches a session, and the clockwork of its turn, that it came, went or works."""
    hub.session_changed(session_id)
    turns.session_changed(session_id)


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
        or services.deadlines.is_waiting
    )
