"""Every error of the product, in one tree.

A branch answers one question: what may the caller do next?

```text
WorkflowsError                stable `code`; the class docstring's first line is the default message
├─ Refused                    nothing changed, and asking again unchanged is pointless
│  ├─ RevisionConflict  ├─ IdempotencyConflict  ├─ NotFound  ├─ OwnershipLost
│  ├─ TransitionDenied  ├─ AuthorityDenied      ├─ LimitExceeded  ├─ LateImport
│  └─ PayloadInvalid     └─ ProblemsFound: several mistakes, reported together
├─ WrongUsage                 nothing was sent: the command line itself is wrong
├─ Unavailable                nothing changed, ask again later
├─ OutcomeUnknown             the reply was lost: send the same command again
├─ Incompatible               a database that is not ours: bytes untouched
├─ Corrupt                    verification failed: the server stops
└─ ProtocolViolation          the peer's fault: that connection is closed without a reply
AssertionError                our bug: roll back, stop, never reply "refused"
```

The file stands alone so that every layer can raise these without importing another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar


class Outcome(StrEnum):
    """The closed set of outcomes that a command can have on the wire and in a receipt."""

    ACCEPTED = "accepted"
    ADOPTED = "adopted"
    REJECTED = "rejected"
    CONFLICT = "conflict"
    NOT_FOUND = "notFound"
    CLAIM_LOST = "claimLost"
    UNAVAILABLE = "unavailable"


class ClaimLost(StrEnum):
    """Why a claim no longer authorizes a write, in the order in which the reasons are tested."""

    MISSING_AUTHORITY = "missingAuthority"
    OWNER_CHANGED = "ownerChanged"
    TOKEN_CHANGED = "tokenChanged"
    GENERATION_CHANGED = "generationChanged"
    EXPIRED = "expired"


class WorkflowsError(Exception):
    """The operation failed.

    Args:
        message: One line for a person; the class docstring's first line by default.
        code: A stable identifier for programs; the class's own code by default.
        field: The path of the value at fault, such as `input.repo`, when there is one.
        hint: The one thing to do next, when there is one.
    """

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = 1

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        field: str | None = None,
        hint: str | None = None,
    ) -> None:
        text = message if message is not None else (type(self).__doc__ or "").split("\n", 1)[0]
        super().__init__(text)
        self.message = text
        self.reason_code = code if code is not None else type(self).code
        self.field = field
        self.hint = hint


class Refused(WorkflowsError):
    """The request was refused; nothing changed."""

    code = "refused"
    outcome: ClassVar[Outcome] = Outcome.REJECTED


class RevisionConflict(Refused):
    """The resource changed since it was read."""

    code = "staleRevision"
    outcome = Outcome.CONFLICT


class IdempotencyConflict(Refused):
    """The request ID or idempotency key was already used for another request."""

    code = "requestReused"
    outcome = Outcome.CONFLICT


class NotFound(Refused):
    """There is nothing of that name."""

    code = "notFound"
    outcome = Outcome.NOT_FOUND


class OwnershipLost(Refused):
    """The claim that this request relied on moved to another owner."""

    code = "claimLost"
    outcome = Outcome.CLAIM_LOST


class TransitionDenied(Refused):
    """The resource is not in a state that allows this."""

    code = "transitionDenied"


class AuthorityDenied(Refused):
    """This connection may not do that."""

    code = "authorityDenied"


class LimitExceeded(Refused):
    """A value is over its limit."""

    code = "limitExceeded"


class PayloadInvalid(Refused):
    """The request is not well formed."""

    code = "payloadInvalid"


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in what a person wrote.

    Attributes:
        code: A stable camelCase identifier.
        where: The node, field, file or line at fault, such as `nodes.fix` or `input.repo`.
        message: One line that says what is wrong and what to do.
    """

    code: str
    where: str
    message: str

    def __str__(self) -> str:
        """Return the line that a person reads."""
        return f"{self.where}: {self.message}" if self.where else self.message


class ProblemsFound(PayloadInvalid):
    """What was written has mistakes.

    Args:
        problems: Every mistake found, at least one, in the order in which they should be read.
        code: What was being read: `definitionInvalid`, `inputInvalid`, `importError` and so on.
    """

    code = "definitionInvalid"

    def __init__(self, problems: Iterable[Problem], *, code: str | None = None) -> None:
        self.problems = tuple(problems)
        assert self.problems, "ProblemsFound without a problem"
        text = "; ".join(str(problem) for problem in self.problems)
        super().__init__(text, code=code, field=self.problems[0].where or None)


class LateImport(Refused, ImportError):
    """A module of the workflow's directory was imported after the workflow was loaded."""

    code = "lateImport"


class WrongUsage(WorkflowsError):
    """The command line is wrong; nothing was sent."""

    code = "wrongUsage"
    exit_code = 2


class Unavailable(WorkflowsError):
    """The server cannot take this now; nothing changed."""

    code = "unavailable"
    exit_code = 3


class OutcomeUnknown(WorkflowsError):
    """The reply was lost and no server answered in time; send the same command again."""

    code = "outcomeUnknown"
    exit_code = 5


class Incompatible(WorkflowsError):
    """Pi Workflows durable state is incompatible. Back up and move state.sqlite with its -wal and -shm files, then start Pi Workflows to create a new state.sqlite database. The incompatible state was not changed."""  # noqa: E501 - the fixed text is one line

    code = "stateIncompatible"
    exit_code = 4


class Corrupt(WorkflowsError):
    """The database is damaged; nothing was changed or repaired."""

    code = "stateCorrupt"
    exit_code = 4


class ProtocolViolation(WorkflowsError):
    """The peer sent something that the protocol does not allow."""

    code = "protocolViolation"
