"""What a child writes: read to its end, so that it never blocks, and only the last of it kept."""

from __future__ import annotations

import trio

from pi_workflows.base.limits import RUNNER_OUTPUT_BYTES_MAX, SOCKET_READ_BYTES


class Tail:
    """The last 64 KiB of a stream, as a diagnostic.

    Attributes:
        ended: Set when the stream has ended.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self.ended = trio.Event()
        self._kept = bytearray()

    @property
    def content(self) -> bytes:
        """What is kept."""
        return bytes(self._kept[-RUNNER_OUTPUT_BYTES_MAX:])

    async def drain(self, stream: trio.abc.ReceiveStream) -> None:
        """Read until the end of a stream, whoever holds its other end."""
        try:
            while data := await stream.receive_some(SOCKET_READ_BYTES):
                self._kept += data
                # Cut at twice the bound, so that a byte is moved once.
                if len(self._kept) > 2 * RUNNER_OUTPUT_BYTES_MAX:
                    del self._kept[:-RUNNER_OUTPUT_BYTES_MAX]
        except trio.BrokenResourceError:
            pass
        finally:
            self.ended.set()
