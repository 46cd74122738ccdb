"""The socket: bound so that only our user can connect, each connection a task of its own.

The only place where any exception of a connection is caught: it ends that connection, never the
server.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias, cast

import trio

from pi_workflows.base import ids
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.base.limits import CONNECTIONS_MAX
from pi_workflows.server.log import ServerLog
from pi_workflows.server.session import Session

_PEER: Final = struct.Struct("3i")
_SOCKET_UMASK: Final = 0o177
_BACKLOG: Final = 128


Accepting: TypeAlias = trio.abc.Listener[trio.abc.Stream]
"""Where connections come from."""


class OwnUsers(Accepting):
    """Accepts connections of our own user only (SO_PEERCRED).

    Args:
        listener: The bound socket; closed with this.
        log: Told of others.
    """

    def __init__(self, listener: trio.SocketListener, log: ServerLog) -> None:
        self._listener = listener
        self._log = log

    async def accept(self) -> trio.SocketStream:
        """Wait for the next connection whose other end is our own user's."""
        while True:
            stream = await self._listener.accept()
            peer = stream.socket.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
            _, uid, _ = _PEER.unpack(peer)
            if uid == os.geteuid():
                return stream
            self._log.limited("connection.refused", reason="user")
            await trio.aclose_forcefully(stream)

    async def aclose(self) -> None:
        """Close the socket."""
        await self._listener.aclose()


def bind(path: Path, log: ServerLog) -> Accepting:
    """Bind the server's socket with mode 0600 and listen on it.

    Args:
        path: Where; nothing stands there. At most 107 bytes, which was checked before.
        log: Told of connections that are refused.

    Returns:
        What connections come from; closing it does not remove the path.

    Raises:
        OSError: The system refused.
    """
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(_SOCKET_UMASK)
    try:
        bound.bind(os.fspath(path))
    except OSError:
        bound.close()
        raise
    finally:
        os.umask(mask)
    bound.listen(_BACKLOG)
    return OwnUsers(trio.SocketListener(trio.socket.from_stdlib_socket(bound)), log)


class Listener:
    """Accepts connections and looks after them.

    Args:
        open_session: Makes the session of a connection under a new connection ID.
        log: The server's log.
        changed: Called, without blocking, when a connection began or ended.
    """

    def __init__(
        self,
        open_session: Callable[[trio.abc.Stream, str], Session],
        log: ServerLog,
        changed: Callable[[], None],
    ) -> None:
        self._open_session = open_session
        self._log = log
        self._changed = changed
        self._sessions: set[Session] = set()

    @property
    def connection_count(self) -> int:
        """How many clients are connected."""
        return len(self._sessions)

    async def finish(self) -> None:
        """Let every connection send what it owes; they stay open until they are cancelled."""
        async with trio.open_nursery() as nursery:
            for session in self._sessions:
                nursery.start_soon(session.finish)

    async def run(self, listener: Accepting, connections: trio.Nursery) -> None:
        """Accept until cancelled. Connections that were accepted live on in their own nursery.

        Args:
            listener: From `bind`; closed at the end.
            connections: Where each connection gets its task.

        Raises:
            OSError: Accepting fails for another reason than a lack of descriptors, which is waited
                out.
        """
        await trio.serve_listeners(self._serve, [listener], handler_nursery=connections)

    async def _serve(self, stream: trio.abc.Stream) -> None:
        """Serve one connection to its end."""
        if len(self._sessions) >= CONNECTIONS_MAX:
            self._log.limited("connection.refused", reason="tooMany")
            await trio.aclose_forcefully(stream)
            return
        session = self._open_session(stream, ids.random_id("connection"))
        self._sessions.add(session)
        self._changed()
        try:
            await self._supervised(session)
        finally:
            self._sessions.discard(session)
            self._changed()

    async def _supervised(self, session: Session) -> None:
        """Run a session; whatever it raises ends it alone, with one line in the log."""
        name = session.connection_id
        try:
            await session.run()
        except ProtocolViolation as violation:
            self._log.limited("connection.violation", connection=name, code=violation.reason_code)
        except Exception as error:  # noqa: BLE001 - the session supervisor
            self._log.limited("connection.failed", connection=name, error=origin(error))


def origin(error: BaseException) -> str:
    """Name the first failure inside an exception and where it was raised, without its message.

    Args:
        error: What was caught; of a group its first member counts.

    Returns:
        Such as `KeyError at hub.py:41`. A message could hold what a client sent.
    """
    found = first_failure(error)
    trace = found.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(found).__name__
    place = Path(trace.tb_frame.f_code.co_filename).name
    return f"{type(found).__name__} at {place}:{trace.tb_lineno}"


def first_failure(error: BaseException) -> BaseException:
    """Return the first failure of a group of groups, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return first_failure(group.exceptions[0])
    return error
