"""A mirror and its changes, for whoever waits for them."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Generic, Protocol, Self, TypeAlias

from pi_workflows.protocol.change import Change
from pi_workflows.protocol.connection import Pending
from pi_workflows.protocol.watching import AnyWatch, MirrorT, News, Watch


class Teller(Protocol):
    """What a feed needs of its client, which is a blocking `Client`."""

    def begin(self, begun: tuple[Watch[MirrorT], Pending]) -> Watch[MirrorT]:
        """Wait until the server has accepted a watch."""
        ...

    def end(self, watch: AnyWatch) -> None:
        """End a watch."""
        ...

    def next_news(
        self, watch: AnyWatch | None = None, *, timeout_ms: int | None = None
    ) -> News | None:
        """Wait for a change."""
        ...


Start: TypeAlias = Callable[[], tuple[Watch[MirrorT], Pending]]
"""Makes a watch and its first request."""


class MirrorFeed(Generic[MirrorT]):
    """What a feed has whichever way it waits.

    Args:
        start: Makes the watch.
    """

    def __init__(self, start: Start[MirrorT]) -> None:
        """Begin nothing yet."""
        self._start = start
        self._watch: Watch[MirrorT] | None = None
        self._is_over = False

    @property
    def watch(self) -> Watch[MirrorT]:
        """The watch, once it has begun: for `next_news`."""
        assert self._watch is not None, "the feed has not begun"
        return self._watch

    @property
    def mirror(self) -> MirrorT:
        """What is mirrored, once it has begun."""
        return self.watch.mirror


class Feed(MirrorFeed[MirrorT]):
    """A mirror and its changes: made by `watch_run` and `watch_list`.

    Args:
        client: Whose.
        start: Makes the watch and its first request.
    """

    def __init__(self, client: Teller, start: Start[MirrorT]) -> None:
        """Begin nothing yet."""
        super().__init__(start)
        self._client = client

    def open(self) -> None:
        """Begin, as `with` does. Raises as `watch_run` says."""
        self._watch = self._client.begin(self._start())

    def close(self) -> None:
        """End the subscription; the mirror stays as it is."""
        self._client.end(self.watch)

    def __enter__(self) -> Self:
        """Begin. Raises as `watch_run` says."""
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        self.close()

    def __iter__(self) -> Self:
        """Go on where the last iteration ended."""
        return self

    def __next__(self) -> tuple[MirrorT, Change]:
        """Wait for the next change. The last one is an end. Raises as `next_news`."""
        if self._is_over:
            raise StopIteration
        news = self._client.next_news(self.watch)
        assert news is not None, "there was no end to the waiting"
        self._is_over = news.change.is_end
        return self.mirror, news.change
