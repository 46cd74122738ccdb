"""Where an author's code meets ours: whatever it raises stops here."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Caught:
    """Catches whatever a block of an author's code raises.

    Its exits, and cancellations that nobody asked for, are failures like any other.

    Attributes:
        error: What was raised, or None.
    """

    def __init__(self) -> None:
        """Begin with nothing caught."""
        self.error: BaseException | None = None

    def __enter__(self) -> Self:
        """Enter the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Leave it; nothing passes."""
        self.error = error
        return error is not None
