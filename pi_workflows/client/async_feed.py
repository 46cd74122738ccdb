"""A mirror and its changes, for whoever awaits them."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from pi_workflows.client.feed import MirrorFeed, Start
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.connection import Pending
from pi_workflows.protocol.watching import AnyWatch, MirrorT, News, Watch


class Teller(Protocol):
    """What a feed needs of its client, which is an `AsyncClient`."""

    async def begin(self, begun: tuple[Watch[MirrorT], Pending]) -> Watch[MirrorT]:
        """Wait until the server has accepted a watch."""
        ...

    def end(self, watch: AnyWatch) -> None:
        """End a watch."""
        ...

    async def next_news(self, watch: AnyWatch | None = None) -> News:
        """Wait for a change."""
        ...


class AsyncFeed(MirrorFeed[MirrorT]):
    """A mirror and its changes: made by `watch_run` and `watch_list`.

    Args:
        client: Whose.
        start: Makes the watch and its first request.
    """

    def __init__(self, client: Teller, start: Start[MirrorT]) -> None:
        """Begin nothing yet."""
        super().__init__(start)
        self._client = client

    async def open(self) -> None:
        """Begin, as `async with` does. Raises as `watch_run` says."""
        self._watch = await self._client.begin(self._start())

    def close(self) -> None:
        """End the subscription; the mirror stays as it is."""
        self._client.end(self.watch)

    async def __aenter__(self) -> Self:
        """Begin. Raises as `watch_run` says."""
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        self.close()

    def __aiter__(self) -> Self:
        """Go on where the last iteration ended."""
        return self

    async def __anext__(self) -> tuple[MirrorT, Change]:
        """Wait for the next change. The last one is an end. Raises as `next_news`."""
        if self._is_over:
            raise StopAsyncIteration
        change = (await self._client.next_news(self.watch)).change
        self._is_over = change.is_end
        return self.mirror, change
