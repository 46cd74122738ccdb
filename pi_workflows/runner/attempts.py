"""One attempt of a node while this runner executes it, and how it ended."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, cast

from pi_workflows.authoring.context import CancelSignal
from pi_workflows.authoring.failures import failure
from pi_workflows.authoring.nodes import AnyNode
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import WorkflowsError
from pi_workflows.base.units import NS_PER_MS
from pi_workflows.definition.selector import NodeOutcome
from pi_workflows.protocol.proposals import Failure
from pi_workflows.runner.plan import Enter

# Later than any monotonic reading: an attempt without a limit.
NEVER_NS: Final = 2**63 - 1
_CODE_RAISED: Final = "raised"


@dataclass(frozen=True, slots=True)
class Bound:
    """A value of a workflow's settings.

    Attributes:
        scope_id: The settings.
        change_number: Which change of them it is.
        value_hash: SHA-256 of its bytes, hex.
        content: Its canonical bytes.
    """

    scope_id: str
    change_number: int
    value_hash: str
    content: bytes


@dataclass(slots=True, eq=False)
class Attempt:
    """An attempt under way.

    Attributes:
        step: What it is an attempt of.
        node: The author's node.
        attempt_id: Its derived identity.
        attempt_number: Which attempt of its path, from 1.
        timeout_ms: Its budget in active milliseconds; 0 = unlimited.
        started_ns: Monotonic reading when it began.
        deadline_ns: Monotonic reading when its budget ends.
        prompt: What an agent is told.
        cancel: What a function that runs in a thread looks at.
        is_open: Whether it may still publish updates.
        settings: The value that it is bound to, if its workflow has settings.
    """

    step: Enter
    node: AnyNode
    attempt_id: str
    attempt_number: int
    timeout_ms: int
    started_ns: int
    deadline_ns: int
    prompt: str = ""
    cancel: CancelSignal = field(default_factory=CancelSignal)
    is_open: bool = True
    settings: Bound | None = None

    @property
    def node_path(self) -> str:
        """The node's full path."""
        return self.step.node_path


def deadline_ns(started_ns: int, timeout_ms: int) -> int:
    """Return when a budget that begins at a monotonic reading ends."""
    return started_ns + timeout_ms * NS_PER_MS if timeout_ms else NEVER_NS


@dataclass(frozen=True, slots=True)
class Settlement:
    """How an attempt ended.

    Attributes:
        outcome: `ok`, `failed` or `timed_out`.
        output: Its output in canonical bytes, if `ok`.
        failure: Why not, otherwise.
        receipt: A small account of what it did.
        is_stuck: A function of the author's still runs in this process, which therefore cannot go
            on.
    """

    outcome: NodeOutcome
    output: bytes | None = None
    failure: Failure | None = None
    receipt: dict[str, Json] | None = None
    is_stuck: bool = False


def failed(reason: Failure, *, receipt: dict[str, Json] | None = None) -> Settlement:
    """Return the settlement of an attempt that failed."""
    return Settlement("failed", failure=reason, receipt=receipt)


def timed_out(
    timeout_ms: int, *, receipt: dict[str, Json] | None = None, is_stuck: bool = False
) -> Settlement:
    """Return the settlement of an attempt whose budget ended."""
    reason = Failure.of("timedOut", f"not done within {timeout_ms / 1_000:g} s of active time")
    return Settlement("timed_out", failure=reason, receipt=receipt, is_stuck=is_stuck)


def reason_of(error: BaseException, files: Collection[str]) -> Failure:
    """Say why something of the author's failed.

    Args:
        error: What it raised. Our own refusals keep their code and words; of anything else the
            type, the text and the author's line are told.
        files: The paths of the author's source files.
    """
    error = _only_cause(error)
    if isinstance(error, WorkflowsError):
        code = error.reason_code
        message = f"{error.message} {error.hint}" if error.hint else error.message
    else:
        problem = failure(error, files, code=_CODE_RAISED)
        code = problem.code
        message = f"{problem.message} ({problem.where})" if problem.where else problem.message
    # Words of other programs may hold what UTF-8 cannot.
    return Failure.of(code, message.encode(errors="replace").decode())


def _only_cause(error: BaseException) -> BaseException:
    """Return the error that a group was made of when it is the only one."""
    while isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        first, *others = group.exceptions
        if others:
            return group
        error = first
    return error
