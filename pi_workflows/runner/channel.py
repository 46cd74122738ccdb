"""The runner's end of its private channel: frames in, frames out, from any thread."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncIterator, Callable
from typing import Final

import trio

from pi_workflows.protocol import frames
from pi_workflows.protocol.runner import FromRunner, FromServer, decode_from_server, encode

_READ_BYTES: Final = 256 * 1_024
_WRITE_BYTES: Final = 256 * 1_024
# Beyond this much unsent, whoever produces more has to wait.
_BACKLOG_BYTES_MAX: Final = 1_024 * 1_024


class Channel:
    """One connected stream socket, descriptor 3 of the process.

    `send` may be called from any thread and never blocks: what the socket does not take waits in a
    backlog that `flush` writes. The other methods belong to the thread that runs trio.
    """

    def __init__(self, stream: socket.socket) -> None:
        """Take over a connected socket.

        Args:
            stream: The socket; it is made non-blocking when trio takes over.
        """
        self._socket = stream
        self._reader = frames.FrameReader()
        self._lock = threading.Lock()
        self._backlog = bytearray()
        self._backlog_grew = trio.Event()
        self._token: trio.lowlevel.TrioToken | None = None
        self._on_drained: Callable[[], None] | None = None

    @property
    def has_room(self) -> bool:
        """Whether the backlog is short enough for more."""
        return len(self._backlog) < _BACKLOG_BYTES_MAX

    def first(self) -> FromServer | None:
        """Block until the first frame is there; None when the stream ends before it.

        Raises:
            ProtocolViolation: The frame is none of this protocol.
        """
        while data := self._socket.recv(_READ_BYTES):
            for frame in self._reader.feed(data):
                return decode_from_server(frame)
        return None

    def enter_trio(self, on_drained: Callable[[], None]) -> None:
        """Continue under trio.

        Args:
            on_drained: Called in trio's thread whenever the backlog has become short.
        """
        self._token = trio.lowlevel.current_trio_token()
        self._on_drained = on_drained
        self._socket.settimeout(0)

    def send(self, message: FromRunner) -> None:
        """Send a message."""
        self.send_bytes(encode(message))

    def send_bytes(self, frame: bytes) -> None:
        """Send one frame. A peer that is gone is noticed by whoever reads, not here."""
        with self._lock:
            if self._backlog:
                self._backlog += frame
                return
            sent = 0
            try:
                sent = self._socket.send(frame)
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionResetError):
                return
            if sent == len(frame):
                return
            self._backlog += frame[sent:]
        if (
            self._token is None
        ):  # before trio the socket blocks, and a blocking send may still be partial
            self._flush_blocking()
        else:
            self._token.run_sync_soon(self._wake_writer)

    async def messages(self) -> AsyncIterator[FromServer]:
        """Yield what the server sends until it closes the stream.

        Raises:
            ProtocolViolation: The server sent something else than this protocol.
        """
        data = b""
        while True:
            # The first turn serves what came together with the launch.
            for frame in self._reader.feed(data):
                yield decode_from_server(frame)
            data = await self._receive()
            if not data:
                return

    async def flush(self) -> None:
        """Write the backlog whenever there is one, until cancelled or the peer is gone."""
        while True:
            await self._backlog_grew.wait()
            self._backlog_grew = trio.Event()
            while self._backlog:
                await trio.lowlevel.wait_writable(self._socket)
                if not self._write_some():
                    return
                if self.has_room and self._on_drained is not None:
                    self._on_drained()

    async def _receive(self) -> bytes:
        """Return the next bytes; none at the end of the stream."""
        while True:
            try:
                return self._socket.recv(_READ_BYTES)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._socket)
            except ConnectionResetError:
                return b""

    def _write_some(self) -> bool:
        """Write a part of the backlog; False when the peer is gone."""
        with self._lock:
            try:
                sent = self._socket.send(self._backlog[:_WRITE_BYTES])
            except BlockingIOError:
                sent = 0
            except (BrokenPipeError, ConnectionResetError):
                self._backlog.clear()
                return False
            del self._backlog[:sent]
        return True

    def _flush_blocking(self) -> None:
        """Write the whole backlog before trio runs."""
        with self._lock:
            self._socket.sendall(self._backlog)
            self._backlog.clear()

    def _wake_writer(self) -> None:
        self._backlog_grew.set()
