"""A whole server in one process: real parts, a real file, memory streams, and trio's own clock."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from pi_workflows.base import canonical, ids
from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import Clock, SystemClock
from pi_workflows.base.errors import Outcome
from pi_workflows.base.limits import FRAME_BYTES_MAX
from pi_workflows.base.sql import Statement
from pi_workflows.protocol import envelope
from pi_workflows.protocol.broadcast import Broadcast
from pi_workflows.protocol.envelope import Event, EventKind, FromServer, Hello, Request, Response
from pi_workflows.protocol.frames import FrameReader
from pi_workflows.protocol.operations import Operation
from pi_workflows.server.compose import Parts, compose
from pi_workflows.server.lifetime import Lifetime
from pi_workflows.server.log import ServerLog
from pi_workflows.server.paths import StateDirectory, prepare
from pi_workflows.server.settings import Settings
from tests.kernel.harness import LINE
from tests.kernel.rebuilt import assert_rebuilds
from tests.server.clocks import TrioClock

VERSION = "1.2.3"
SOURCE = b'"""A workflow."""\n'


class Peer:
    """A client that speaks frames and keeps what it got.

    Args:
        stream: Its end of the connection.
        client_id: Its name.
    """

    def __init__(self, stream: trio.abc.Stream, client_id: str = "client") -> None:
        """Begin with nothing received."""
        self.stream = stream
        self.client_id = client_id
        self.events: list[Event] = []
        self._reader = FrameReader()
        self._messages: list[FromServer] = []
        self._responses: dict[str, Response] = {}

    async def receive(self) -> FromServer | None:
        """Return the next message; None at the end of the stream."""
        while not self._messages:
            data = await self.stream.receive_some(65_536)
            if not data:
                return None
            frames = self._reader.feed(bytes(data))
            self._messages += [envelope.decode_from_server(frame) for frame in frames]
        return self._messages.pop(0)

    async def hello(self) -> Hello:
        """Return the first message."""
        message = await self.receive()
        assert isinstance(message, Hello)
        return message

    async def send(self, request: Request) -> None:
        """Send a request."""
        await self.stream.send_all(envelope.encode(request))

    def request(
        self,
        operation: str,
        payload: Json = None,
        *,
        run_id: str | None = None,
        expected_revision: int | None = None,
        key: str | None = None,
    ) -> Request:
        """Return a request under a new request ID."""
        return Request(
            request_id=ids.random_id("request"),
            client_id=self.client_id,
            operation=Operation(operation),
            idempotency_key=key or ids.random_id("key"),
            payload={} if payload is None else payload,
            run_id=run_id,
            expected_revision=expected_revision,
        )

    async def ask(
        self,
        operation: str,
        payload: Json = None,
        *,
        run_id: str | None = None,
        expected_revision: int | None = None,
        key: str | None = None,
    ) -> Response:
        """Ask for something and return the answer; events that come first are kept."""
        request = self.request(
            operation, payload, run_id=run_id, expected_revision=expected_revision, key=key
        )
        await self.send(request)
        return await self.response(request)

    async def response(self, request: Request) -> Response:
        """Return the answer to a request."""
        while request.request_id not in self._responses:
            message = await self.receive()
            if isinstance(message, Event):
                self.events.append(message)
            else:
                assert isinstance(message, Response), message
                self._responses[message.request_id] = message
        return self._responses.pop(request.request_id)

    async def event(self) -> Event:
        """Return the next event."""
        if self.events:
            return self.events.pop(0)
        message = await self.receive()
        assert isinstance(message, Event), message
        return message


class MemoryListener(trio.abc.Listener[trio.abc.Stream]):
    """Accepts streams that were never a socket."""

    def __init__(self) -> None:
        """Begin with nobody at the door."""
        self._send, self._receive = trio.open_memory_channel[trio.abc.Stream](0)

    async def connect(self, stream: trio.abc.Stream) -> None:
        """Wait until the server has accepted a stream."""
        await self._send.send(stream)

    async def accept(self) -> trio.abc.Stream:
        """Return the next stream."""
        return await self._receive.receive()

    async def aclose(self) -> None:
        """Accept nothing more."""
        self._receive.close()
        await trio.lowlevel.checkpoint()


@dataclass
class Bench:
    """A server that runs.

    Attributes:
        state: Its directory.
        parts: Its parts.
        life: Its life.
    """

    state: StateDirectory
    parts: Parts
    life: Lifetime
    door: MemoryListener
    source: Path = field(init=False)

    def __post_init__(self) -> None:
        """Write the workflow file that the tests' runs come from."""
        self.source = self.state.root.parent / "sample_workflow.py"
        if not self.source.exists():
            self.source.write_bytes(SOURCE)

    async def connect(self, client_id: str = "client", *, is_stalling: bool = False) -> Peer:
        """Connect a client; one that stalls takes nothing that it does not ask for."""
        pair = trio.testing.lockstep_stream_pair if is_stalling else trio.testing.memory_stream_pair
        ours, theirs = cast("tuple[trio.abc.Stream, trio.abc.Stream]", pair())
        await self.door.connect(theirs)
        peer = Peer(ours, client_id)
        await peer.hello()
        return peer

    async def connect_silently(self) -> Peer:
        """Connect a client that has read nothing yet."""
        ours, theirs = trio.testing.memory_stream_pair()
        await self.door.connect(theirs)
        return Peer(ours)

    def start(self, run_id: str = "run-1", **changes: Json) -> dict[str, Json]:
        """Return the payload that starts a run of two compute nodes."""
        digest = ids_of(self.source.read_bytes())
        file: Json = {"mount": "", "path": str(self.source), "sha256": digest}
        files: Json = [file]
        payload: dict[str, Json] = {
            "projectPath": str(self.source.parent),
            "workflowName": "sample",
            "workflowSourceRef": "sample",
            "workflowSource": {
                "type": "file",
                "ref": str(self.source),
                "revision": ids_of(canonical.encode(files)),
            },
            "sourceFiles": files,
            "definitionDigest": f"sha256:{LINE.hex}",
            "definitionSnapshot": canonical.decode(LINE.content),
            "input": {"task": "check"},
            "originSessionId": f"local-{run_id}",
            "executionMode": "headless",
        }
        return {**payload, **changes}

    async def started(self, peer: Peer, run_id: str = "run-1") -> Response:
        """Start a run and return the answer."""
        response = await peer.ask("run.start", self.start(run_id), run_id=run_id)
        assert response.outcome is Outcome.ACCEPTED, response
        return response

    def receipt_count(self) -> int:
        """Return how many receipts of clients are stored."""
        count = Statement("receipts", "SELECT count(*) FROM host_commands")
        with self.parts.services.store.snapshot() as read:
            found = read.one(int, count)
        assert found is not None
        return found

    @contextmanager
    def damaged_views(self, run_id: str) -> Generator[None]:
        """Make every view of a run one that is too large for a frame, as long as the body runs."""
        hub = self.parts.services.hub
        real = hub.view

        def view(wanted: str, build: Callable[[], Broadcast]) -> Broadcast:
            found = real(wanted, build)
            if wanted != run_id:
                return found
            huge = "x" * FRAME_BYTES_MAX
            return Broadcast.of(EventKind.RUN_SNAPSHOT, huge, revision=found.revision)

        with pytest.MonkeyPatch.context() as planted:
            planted.setattr(hub, "view", view)
            yield

    def log_lines(self) -> list[str]:
        """Return the lines of the server's log."""
        return self.state.log.read_text(encoding="utf-8").splitlines()


def ids_of(content: bytes) -> str:
    """Return the hex SHA-256 of bytes."""
    return hashlib.sha256(content).hexdigest()


@asynccontextmanager
async def server(
    directory: Path,
    *,
    clock: Clock | None = None,
    runners_max: int = 0,
    leaves_when_idle: bool = False,
    is_compared: bool = True,
) -> AsyncGenerator[Bench]:
    """Run a server as long as the body runs, stop it, and compare its log with its rows.

    Args:
        directory: The state directory.
        clock: Wall and monotonic time; trio's when None.
        runners_max: Runs that execute at once; none unless a test asks for them.
        leaves_when_idle: Whether it ends by itself.
        is_compared: Whether the log is replayed before the end.
    """
    state = prepare(directory)
    settings = Settings({}, VERSION, runners_max=runners_max)
    used = clock or TrioClock()
    parts = compose(state, settings, clock=used, log=ServerLog(state.log, SystemClock()))
    life = Lifetime(parts, leaves_when_idle=leaves_when_idle)
    ready = trio.Event()
    door = MemoryListener()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(life.run, lambda: door, ready.set)
        await ready.wait()
        yield Bench(state, parts, life, door)
        if is_compared and not parts.services.stop.is_requested:
            assert_rebuilds(parts.services.store)
        parts.services.stop.request(0)


def run(test: Callable[[], Awaitable[None]], *, mock: bool = True) -> None:
    """Run a test's body; time goes on by itself when nothing else can, unless it is real."""
    clock = trio.testing.MockClock(autojump_threshold=0) if mock else None
    trio.run(test, clock=clock)
