"""What a client gets for a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.protocol.refusal import Refusal

_DONE: Final = frozenset({Outcome.ACCEPTED, Outcome.ADOPTED})


@dataclass(frozen=True, slots=True)
class Reply:
    """What the server answered.

    Attributes:
        outcome: One of the closed set.
        revision: The revision of the resource, when the answer has one.
        receipt: The answer's document; of a refusal, a `Refusal`.
        error: One line for people, of a refusal.
    """

    outcome: Outcome
    revision: int | None = None
    receipt: Json = None
    error: str | None = None

    @property
    def is_done(self) -> bool:
        """Whether it was done, now or by an earlier request of the same key."""
        return self.outcome in _DONE

    @property
    def refusal(self) -> Refusal | None:
        """The code, field, hint and problems of a refusal; None when it was done."""
        return None if self.is_done else Refusal.read(self.outcome, self.receipt)

    def done(self) -> Self:
        """Return the reply itself, or raise its refusal as Refused (by outcome) or Unavailable."""
        refusal = self.refusal
        if refusal is not None:
            raise refusal.error(self.outcome, self.error)
        return self
