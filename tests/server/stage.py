"""The runner side of a server on a real database, with runners that a test plays.

Everything is real but the processes: a scripted runner speaks the private protocol over a stream in
memory, so that a test runs in trio's own time and says what the runner does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias, TypeVar

import trio
import trio.testing

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import Clock
from pi_workflows.base.errors import Outcome
from pi_workflows.base.sql import SqlValue, Statement, plain
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.domain.run.start import Source, StartRun
from pi_workflows.kernel.dispatch import Host
from pi_workflows.kernel.group import Kernel
from pi_workflows.kernel.order import Answer, Order
from pi_workflows.protocol import proposals as wire
from pi_workflows.protocol import runner
from pi_workflows.protocol.frames import FrameReader
from pi_workflows.server.launch import Launched, Started, Starter
from pi_workflows.server.launch_options import LaunchOptions
from pi_workflows.server.log import ServerLog
from pi_workflows.server.process import Identity
from pi_workflows.server.registry import Exit
from pi_workflows.server.scheduler import Scheduler
from pi_workflows.server.supervisor import Supervisor
from pi_workflows.server.timers import Timers
from pi_workflows.server.writer import Writer
from pi_workflows.store.database import Store
from pi_workflows.store.volatile import ServerClaim, take_server_epoch
from projections import route
from tests.kernel.harness import LINE
from tests.kernel.rebuilt import assert_rebuilds
from tests.server.clocks import TrioClock

MemoryStream: TypeAlias = trio.StapledStream[
    trio.testing.MemorySendStream, trio.testing.MemoryReceiveStream
]

SERVER_CLAIM_MS: Final = 30_000
T = TypeVar("T")


class ScriptedProcess:
    """A runner's process as the supervisor sees it; a test says when and how it ends.

    Attributes:
        shells: What was written down.
        is_killed: Whether the supervisor had to end it.
    """

    _pids = count(100_000)

    def __init__(self, hang_up: Callable[[], None]) -> None:
        self.pid = next(self._pids)
        self.start_identity = f"scripted/{self.pid}"
        self.shells: list[int] = []
        self.is_killed = False
        self._hang_up = hang_up
        self._ended = trio.Event()
        self._exit = Exit(signal="SIGTERM")

    @property
    def is_alive(self) -> bool:
        """Whether the test has not ended it."""
        return not self._ended.is_set()

    def end(self, exit_code: int) -> None:
        """Exit."""
        self._exit = Exit(code=exit_code)
        self._hang_up()
        self._ended.set()

    def end_but_hold(self) -> None:
        """Exit while something else holds the channel."""
        self._exit = Exit(code=0)
        self._ended.set()

    def add_shell(self, pid: int, start_time: str, group: int) -> None:
        """Keep a shell."""
        assert (start_time, group) == ("1", pid)
        self.shells.append(pid)

    def drop_shell(self, pid: int) -> None:
        """Forget it."""
        self.shells.remove(pid)

    async def wait(self) -> Exit:
        """Wait for the end that the test gives it."""
        await self._ended.wait()
        return self._exit

    def exit(self) -> Exit:
        """Return how it ended."""
        assert self._ended.is_set()
        return self._exit

    async def kill_tree(self) -> tuple[Identity, ...]:
        """End it, as a signal would."""
        with trio.CancelScope(shield=True):
            await trio.lowlevel.checkpoint()
        if self.is_alive:
            self.is_killed = True
            self._hang_up()
            self._ended.set()
        return ()


class Peer:
    """A runner that a test plays.

    Attributes:
        launched: The launch that it was started with.
        process: Its process.
        run_id: Its run, once it has begun.
    """

    def __init__(
        self, launched: Launched, stream: MemoryStream, output: trio.testing.MemorySendStream
    ) -> None:
        self.launched = launched
        self.process = ScriptedProcess(self._hang_up)
        self.run_id = ""
        self._stream = stream
        self._output = output
        self._reader = FrameReader()
        self._messages: deque[runner.FromServer] = deque()
        self._seq = count(1)

    async def receive(self) -> runner.FromServer | None:
        """Return the next message, None at the end of the stream."""
        while not self._messages:
            try:
                data = await self._stream.receive_some()
            except trio.ClosedResourceError:
                # Ended by the supervisor.
                return None
            if not data:
                return None
            self._messages.extend(map(runner.decode_from_server, self._reader.feed(bytes(data))))
        return self._messages.popleft()

    async def expect(self, kind: type[T]) -> T:
        """Return the next message, which is of this kind."""
        message = await self.receive()
        assert isinstance(message, kind), message
        return message

    async def send(self, *messages: runner.FromRunner) -> None:
        """Send messages in one piece."""
        await self._stream.send_all(b"".join(map(runner.encode, messages)))

    async def send_and_cut(self, message: runner.FromRunner) -> None:
        """Send a message and half of another."""
        whole = runner.encode(message)
        await self._stream.send_all(whole + whole[: len(whole) // 2])

    async def send_log(self, text: str) -> None:
        """Send a log line, and let it arrive."""
        await self.send(runner.Log(level="info", text=text))
        await trio.sleep(0.1)

    async def begin(self) -> runner.Launch:
        """Read the launch and say ready."""
        launch = await self.expect(runner.Launch)
        self.run_id = launch.run_id
        await self.send(
            runner.Ready(definition_digest=launch.definition_digest, mounts=launch.mounts)
        )
        return launch

    def proposal(self, *commands: wire.Command) -> wire.Propose:
        """Return the next proposal."""
        return wire.Propose(seq=next(self._seq), commands=commands)

    async def ask(self, *commands: wire.Command) -> runner.Result:
        """Propose and return the result."""
        await self.send(self.proposal(*commands))
        return await self.expect(runner.Result)

    async def accepted(self, *commands: wire.Command) -> runner.Result:
        """Propose what must be accepted."""
        result = await self.ask(*commands)
        assert result.outcome == "accepted", result
        return result

    async def write(self, text: str) -> None:
        """Write to the diagnostic output."""
        await self._output.send_all(text.encode())

    def leave(self, exit_code: int = 0) -> None:
        """Exit."""
        self.process.end(exit_code)

    def _hang_up(self) -> None:
        self.close()
        self._output.close()

    def close(self) -> None:
        """Close the channel without ending."""
        self._stream.send_stream.close()
        self._stream.receive_stream.close()


class Stage:
    """A server without a socket.

    Attributes:
        clock: The only time there is.
        store: The open database.
        writer: The writer, which runs.
        supervisor: The runners.
        scheduler: What claims for them; `nursery` runs it when the test says so.
        timers: The clockwork, which a test starts.
        changed: The runs whose process facts changed, in order.
    """

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        *,
        runners_max: int = 4,
        starter: Starter | None = None,
    ) -> None:
        self.clock = clock
        self.log = ServerLog(None, clock)
        now_ms = clock.now_ms()
        self.store = Store.open(directory, now_ms=now_ms, app_version="0.0.0")
        expires_at_ms = now_ms + SERVER_CLAIM_MS
        with self.store.transaction() as tx:
            host_id = ids.random_id("host")
            claim = ServerClaim(host_id, ids.random_token(), 1, "1", expires_at_ms)
            epoch = take_server_epoch(tx, claim, now_ms)
        self.host = Host(host_id, epoch)
        self.writer = Writer(Kernel(self.store, route, self.host), self.store, clock, self.log)
        self.changed: list[str] = []
        self._news = trio.Event()
        self._peers, self._arrivals = trio.open_memory_channel[Peer](100)
        self.start_error: OSError | None = None
        self.supervisor = Supervisor(
            writer=self.writer,
            store=self.store,
            starter=starter or self._start,
            clock=clock,
            log=self.log,
            host_id=host_id,
            epoch=epoch,
            changed=self._process_changed,
        )
        self.scheduler = Scheduler(
            supervisor=self.supervisor,
            writer=self.writer,
            store=self.store,
            clock=clock,
            log=self.log,
            host_id=host_id,
            runners_max=runners_max,
        )
        self.timers = Timers(
            runs=self.supervisor,
            writer=self.writer,
            clock=clock,
            log=self.log,
            epoch=epoch,
        )
        self.writer.observe(self.scheduler.observe)

    def _process_changed(self, run_id: str) -> None:
        """Keep a change, and wake who waits for one."""
        self.changed.append(run_id)
        self._news.set()
        self._news = trio.Event()

    def _start(self, launched: Launched, /) -> Started:
        """Start a scripted runner."""
        if self.start_error is not None:
            raise self.start_error
        ours, theirs = trio.testing.memory_stream_pair()
        output_in, output_out = trio.testing.memory_stream_one_way_pair()
        peer = Peer(launched, theirs, output_in)
        self._peers.send_nowait(peer)
        return Started(peer.process, ours, output_out)

    async def peer(self) -> Peer:
        """Return the next runner that was started."""
        return await self._arrivals.receive()

    async def begun(self) -> Peer:
        """Return the next runner that was started, which says ready."""
        peer = await self.peer()
        await peer.begin()
        return peer

    async def do(self, command: Command) -> Answer:
        """Decide one command of a client, which must be accepted."""
        answer = await self.writer.submit(
            Order(
                name="test",
                commands=(command,),
                actor=Actor("control"),
                command_id=ids.random_id("command"),
                run_id=command.run_id,
            )
        )
        assert answer.outcome is Outcome.ACCEPTED, (answer.code, answer.error)
        return answer

    async def start(
        self,
        run_id: str = "run-1",
        workflow: Blob = LINE,
        run_input: Json = None,
        project_path: str = "/",
    ) -> None:
        """Queue a run."""
        await self.do(
            StartRun(
                run_id=run_id,
                project_path=project_path,
                workflow_name="sample",
                workflow_ref="sample",
                sources=(Source("", "file", "/sample_workflow.py", "a" * 64),),
                definition=workflow,
                run_input=Blob.json(run_input),
                launch_options=LaunchOptions(
                    environment={"TZ": "UTC", "PATH": "/secret"}, source_files=()
                ).blob(),
                title=None,
                origin_session_id=f"local-{run_id}",
                execution_mode="headless",
            )
        )

    async def ended(self) -> None:
        """Wait until no runner is left."""
        while self.scheduler.runner_count:
            await self._news.wait()

    def rows(self, table: str) -> list[dict[str, SqlValue]]:
        """Return every row of a table; only tests look at a database so directly."""
        with self.store.snapshot() as read:
            names = [name for (name,) in read.each(plain, _columns(table))]
            return [
                dict(zip(map(str, names), row, strict=True))
                for row in read.each(plain, _everything(table))
            ]

    def row(self, table: str) -> dict[str, SqlValue]:
        """Return the only row of a table."""
        (only,) = self.rows(table)
        return only

    def events(self, run_id: str = "run-1") -> list[str]:
        """Return the types of a run's own events, in order."""
        resource_id = ids.resource_id("run", run_id)
        return [
            str(row["event_type"])
            for row in self.rows("events")
            if row["resource_id"] == resource_id
        ]

    def blob(self, digest: SqlValue) -> bytes:
        """Return a stored value."""
        assert isinstance(digest, bytes)
        with self.store.snapshot() as read:
            return read.blob(digest)


@asynccontextmanager
async def staged(
    directory: Path,
    *,
    runners_max: int = 4,
    is_timed: bool = True,
    clock: Clock | None = None,
    starter: Starter | None = None,
) -> AsyncGenerator[Stage]:
    """Give a stage whose parts run; afterwards the log must give the rows again.

    Args:
        directory: The state directory.
        runners_max: Runs that execute at once.
        is_timed: Whether claims are renewed and time is sampled.
        clock: The only time there is; trio's own by default.
        starter: Starts runners; scripted ones by default.
    """
    stage = Stage(directory, clock or TrioClock(), runners_max=runners_max, starter=starter)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.writer.run)
        nursery.start_soon(stage.scheduler.run)
        async with trio.open_nursery() as timers:
            if is_timed:
                timers.start_soon(stage.timers.run)
            yield stage
            stage.scheduler.close()
            await stage.supervisor.shut_down()
            timers.cancel_scope.cancel()
        stage.writer.close()
    assert_rebuilds(stage.store)
    stage.store.close()


@asynccontextmanager
async def doomed(directory: Path) -> AsyncGenerator[Stage]:
    """Give a stage that ends as a killed server does: nothing is told, nothing more is stored."""
    stage = Stage(directory, TrioClock())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.writer.run)
        nursery.start_soon(stage.scheduler.run)
        yield stage
        nursery.cancel_scope.cancel()
    stage.store.crash()


def play(script: Callable[[], Awaitable[None]]) -> None:
    """Run a test in trio's own time: when nothing can happen any more, the next deadline comes."""

    async def run() -> None:
        # An hour of that time is over in no time, and ends a script that waits for nothing.
        with trio.fail_after(3_600):
            await script()

    trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))


def start_of(
    node: str, *, number: int = 1, visit: int = 1, run_id: str = "run-1", **facts: str | int
) -> wire.StartAttempt:
    """Return the command that starts a node."""
    return wire.StartAttempt.model_validate(
        {
            "attempt_id": ids.attempt_id(run_id, node, number),
            "node_path": node,
            "visit": visit,
            "attempt_number": number,
            "node_type": "compute",
            "timeout_ms": 900_000,
            **facts,
        }
    )


def end_of(
    node: str, output: Json = None, *, number: int = 1, run_id: str = "run-1", outcome: str = "ok"
) -> wire.FinishAttempt:
    """Return the command that settles a node's attempt."""
    facts: dict[str, object] = {
        "attempt_id": ids.attempt_id(run_id, node, number),
        "outcome": outcome,
        "elapsed_ns": 5_000_000,
    }
    if outcome == "ok":
        facts["output"] = {"json": output}
    else:
        facts["error"] = wire.Failure(code="raised", message="it did not work")
    return wire.FinishAttempt.model_validate(facts)


def finish_of(output: Json = None) -> wire.FinishRun:
    """Return the command that completes a run."""
    return wire.FinishRun.model_validate({"outcome": "completed", "output": {"json": output}})


def _everything(table: str) -> Statement:
    """Return the query for every row of a table."""
    return Statement(table, f"SELECT * FROM {table} ORDER BY rowid")  # noqa: S608 - a test's own


def _columns(table: str) -> Statement:
    """Return the query for a table's columns."""
    return Statement(table, f"SELECT name FROM pragma_table_info('{table}') ORDER BY cid")  # noqa: S608 - as above
