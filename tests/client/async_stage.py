"""One stage for the clients of both event loops: a scripted server, tasks, and a clock that jumps.

The server is a task of the test's own loop, whose time goes on only when everybody waits.
"""

from __future__ import annotations

import asyncio
import json
import selectors
import socket
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import trio
import trio.testing

from pi_workflows.base.errors import Outcome
from pi_workflows.client import asyncio_client, trio_client
from pi_workflows.client.async_client import Signal
from pi_workflows.client.asyncio_client import AsyncioClient
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.client.trio_client import TrioClient
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.operations import Operation
from tests.client.peer import VERSION, hello

_READ_BYTES: Final = 65_536
# How long threads may take to end before the clock jumps over the patience of who waits for them.
_THREAD_SECONDS: Final = 2
_PATIENCE_SECONDS: Final = 60

AnyClient: TypeAlias = TrioClient | AsyncioClient
Script: TypeAlias = Callable[..., Awaitable[object]]


class Connection(ABC):
    """One client's connection, as the server sees it."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @abstractmethod
    async def send(self, data: bytes) -> None:
        """Send frames, or whatever else."""

    @abstractmethod
    async def close(self) -> None:
        """Close the connection."""

    @abstractmethod
    async def _read(self) -> bytes:
        """Read once."""

    async def request(self) -> dict[str, Any]:
        """Return the next request. Fails when the client closes instead."""
        while b"\n" not in self._buffer:
            data = await self._read()
            assert data, "the client closed"
            self._buffer += data
        content, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        request: dict[str, Any] = json.loads(content)
        return request

    async def until_closed(self) -> bytes:
        """Wait until the client closes; return what it sent before."""
        while data := await self._read():
            self._buffer += data
        return bytes(self._buffer)


class _TrioConnection(Connection):
    """On trio."""

    def __init__(self, stream: trio.SocketStream) -> None:
        super().__init__()
        self._stream = stream

    async def send(self, data: bytes) -> None:
        """Send."""
        await self._stream.send_all(data)

    async def close(self) -> None:
        """Close."""
        await self._stream.aclose()

    async def _read(self) -> bytes:
        """Read once."""
        return bytes(await self._stream.receive_some(_READ_BYTES))


class _AsyncioConnection(Connection):
    """On asyncio."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__()
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Send."""
        self._writer.write(data)
        await self._writer.drain()

    async def close(self) -> None:
        """Close."""
        self._writer.close()
        await self._writer.wait_closed()

    async def _read(self) -> bytes:
        """Read once."""
        return await self._reader.read(_READ_BYTES)


class Server(ABC):
    """The server's socket."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def listen(self) -> None:
        """Begin to listen."""
        self._socket.bind(str(self.path))
        self._socket.listen()
        self._socket.settimeout(0)

    def close(self) -> None:
        """Stop listening and remove the socket, as a server does that ends."""
        self.path.unlink(missing_ok=True)
        self._socket.close()

    @abstractmethod
    async def accept(self, *, greeting: bytes | None = None) -> Connection:
        """Accept a client and greet it."""


class _TrioServer(Server):
    """On trio."""

    async def accept(self, *, greeting: bytes | None = None) -> Connection:
        """Accept a client and greet it."""
        accepted, _ = await trio.socket.from_stdlib_socket(self._socket).accept()
        connection = _TrioConnection(trio.SocketStream(accepted))
        await connection.send(hello() if greeting is None else greeting)
        return connection


class _AsyncioServer(Server):
    """On asyncio."""

    async def accept(self, *, greeting: bytes | None = None) -> Connection:
        """Accept a client and greet it."""
        accepted, _ = await asyncio.get_running_loop().sock_accept(self._socket)
        connection = _AsyncioConnection(*await asyncio.open_connection(sock=accepted))
        await connection.send(hello() if greeting is None else greeting)
        return connection


class Tasks(Protocol):
    """Tasks that end together."""

    def start(self, script: Script, *values: Any) -> None:
        """Start one."""
        ...

    async def open(self, starter: Callable[[], None] | None = None) -> AnyClient:
        """Return a client that is served here."""
        ...


class Stage(ABC):
    """What a test sees of its loop."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.server = self.new_server()

    @abstractmethod
    def new_server(self) -> Server:
        """Return a socket that does not listen yet."""

    @abstractmethod
    def now(self) -> float:
        """Return the loop's time."""

    @abstractmethod
    def signal(self) -> Signal:
        """Return an event."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Let the time pass."""

    @abstractmethod
    async def is_over_in(self, seconds: float, script: Script, *values: Any) -> bool:
        """Run a script, and cancel it when that time has passed."""

    @abstractmethod
    async def settle(self) -> None:
        """Wait until everybody else waits."""

    @abstractmethod
    def tasks(self) -> AbstractAsyncContextManager[Tasks]:
        """Return tasks that end with the body."""

    def endpoint(self, starter: Callable[[], None] | None = None) -> Endpoint:
        """Return where the client connects."""
        return Endpoint(
            str(self.path), VERSION, client_id="client-1", random=lambda: 1.0, starter=starter
        )


class _TrioTasks:
    """On trio."""

    def __init__(self, nursery: trio.Nursery, stage: Stage) -> None:
        self._nursery = nursery
        self._stage = stage

    def start(self, script: Script, *values: Any) -> None:
        """Start one."""
        self._nursery.start_soon(script, *values)

    async def open(self, starter: Callable[[], None] | None = None) -> AnyClient:
        """Return a client that is served here."""
        return await trio_client.open_client(self._nursery, self._stage.endpoint(starter))


class _TrioStage(Stage):
    """On trio."""

    def new_server(self) -> Server:
        """Return a socket."""
        return _TrioServer(self.path)

    def now(self) -> float:
        """Return the time."""
        return trio.current_time()

    def signal(self) -> Signal:
        """Return an event."""
        return trio.Event()

    async def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        await trio.sleep(seconds)

    async def is_over_in(self, seconds: float, script: Script, *values: Any) -> bool:
        """Run a script."""
        with trio.move_on_after(seconds) as scope:
            await script(*values)
        return not scope.cancelled_caught

    async def settle(self) -> None:
        """Wait for everybody."""
        await trio.testing.wait_all_tasks_blocked()

    @asynccontextmanager
    async def tasks(self) -> AsyncGenerator[Tasks]:
        """Return tasks."""
        async with trio.open_nursery() as nursery:
            yield _TrioTasks(nursery, self)


class _AsyncioTasks:
    """On asyncio."""

    def __init__(self, group: asyncio.TaskGroup, stage: Stage) -> None:
        self._group = group
        self._stage = stage

    def start(self, script: Script, *values: Any) -> None:
        """Start one."""

        async def run() -> None:
            await script(*values)

        self._group.create_task(run())

    async def open(self, starter: Callable[[], None] | None = None) -> AnyClient:
        """Return a client that is served here."""
        return await asyncio_client.open_client(self._group, self._stage.endpoint(starter))


class _AsyncioStage(Stage):
    """On asyncio."""

    def new_server(self) -> Server:
        """Return a socket."""
        return _AsyncioServer(self.path)

    def now(self) -> float:
        """Return the time."""
        return asyncio.get_running_loop().time()

    def signal(self) -> Signal:
        """Return an event."""
        return asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        """Let the time pass."""
        await asyncio.sleep(seconds)

    async def is_over_in(self, seconds: float, script: Script, *values: Any) -> bool:
        """Run a script."""
        try:
            async with asyncio.timeout(seconds):
                await script(*values)
        except TimeoutError:
            return False
        return True

    async def settle(self) -> None:
        """Wait for everybody: time passes only then."""
        await asyncio.sleep(0.001)

    @asynccontextmanager
    async def tasks(self) -> AsyncGenerator[Tasks]:
        """Return tasks."""
        async with asyncio.TaskGroup() as group:
            yield _AsyncioTasks(group, self)


class _JumpingSelector(selectors.DefaultSelector):
    """Does not wait for time: it lets it pass when nothing is ready."""

    elapsed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready."""
        has_threads = any(each.name.startswith("asyncio_") for each in threading.enumerate())
        is_patient = timeout is not None and timeout > _PATIENCE_SECONDS
        found = super().select(_THREAD_SECONDS if has_threads and is_patient else 0)
        if found or timeout == 0:
            return found
        if timeout is None:
            return super().select(None)
        self.elapsed += timeout
        return []


class _JumpingLoop(asyncio.SelectorEventLoop):
    """Its time is what its selector let pass."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Return the time."""
        return self._jumping.elapsed


StageTest: TypeAlias = Callable[[Stage], Awaitable[None]]
LOOPS: Final = ("trio", "asyncio")


def run_test(loop: str, test: StageTest, *, listens: bool = True) -> None:
    """Run a test on one of the loops."""

    async def run(path: Path) -> None:
        stage = _TrioStage(path) if loop == "trio" else _AsyncioStage(path)
        try:
            if listens:
                stage.server.listen()
            await test(stage)
        finally:
            stage.server.close()

    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "host.sock"
        if loop == "trio":
            trio.run(run, path, clock=trio.testing.MockClock(autojump_threshold=0))
            return
        with asyncio.Runner(loop_factory=_JumpingLoop) as runner:
            runner.run(run(path))


async def pause(client: AnyClient) -> Outcome:
    """Ask to pause a run and return the outcome."""
    return (await client.request(Operation.RUN_PAUSE, {}, run_id="build-1")).outcome


def reason_of(told: Event | Change) -> object:
    """Return why a subscription is unavailable."""
    if isinstance(told, Change):
        assert told.failure is not None
        return told.failure.reason_code
    assert told.event is EventKind.UNAVAILABLE
    assert isinstance(told.payload, dict)
    return told.payload["reasonCode"]
