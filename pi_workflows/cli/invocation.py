"""One invocation of the command line: its global options, its identity, where it writes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from pi_workflows.base import ids
from pi_workflows.cli.output import Output

_CLIENT_HEX = 32


@dataclass(slots=True)
class Invocation:
    """What every command gets.

    Attributes:
        output: Where it writes.
        key: The idempotency key of its command: the one that was given, or a random one.
        followed: The runs that go on when this invocation is interrupted.
    """

    output: Output
    key: str = field(default_factory=lambda: ids.random_id("key"))
    followed: tuple[str, ...] = ()

    @property
    def is_json(self) -> bool:
        """Whether programs read the result."""
        return self.output.is_json

    @property
    def client_id(self) -> str:
        """Who asks: random like the key, and the same again when the key is repeated.

        The server knows an earlier request by client and key together.
        """
        return f"cli-{self.derived('client').hex()[:_CLIENT_HEX]}"

    def derived(self, purpose: str) -> bytes:
        """Return 32 bytes that a repeated key gives again: what a command would draw at random."""
        return hashlib.sha256(f"{purpose}\0{self.key}".encode()).digest()
