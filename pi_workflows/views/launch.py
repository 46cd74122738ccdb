"""What a runner goes on from: the parts of a launch envelope that stand in the database.

The runner protocol, `launch`. The server adds what only it knows: worker epoch, generation, limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from pi_workflows.base import canonical
from pi_workflows.base.errors import NotFound
from pi_workflows.base.limits import (
    CARRIED_BYTES_MAX,
    INLINE_BYTES_MAX,
    LAUNCH_INLINE_BYTES_MAX,
    TITLE_CHARS_MAX,
)
from pi_workflows.base.sql import Read, load
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.definition.source import WorkflowSource
from pi_workflows.domain.failure import Failure as StoredFailure
from pi_workflows.domain.request.closing import closed_outcome
from pi_workflows.domain.run.state import NODE_OUTCOME, last_step, visit_tries
from pi_workflows.protocol.content import BlobRef, JsonRef, Ref
from pi_workflows.protocol.proposals import Failure
from pi_workflows.protocol.runner import Last, Mount, NodeResult, OpenVisit, Resume
from pi_workflows.views.heads import Head, HeadValue, head_values, node_heads
from pi_workflows.views.launch_mounts import composed, mount_states
from pi_workflows.views.launch_settings import settings_scopes
from pi_workflows.views.value import Value

SQL: Final = load(__package__, "launch.sql")


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """What the database knows about a run's next launch.

    Attributes:
        run_id: The run.
        tag: `resume` from the run's first ready runner on.
        project_path: Absolute; the runner's working directory.
        definition_digest: `sha256:` and hex.
        definition_hash: Digest of the stored snapshot.
        launch_options_hash: Digest of the stored launch options, which hold the source files.
        execution_mode: Whether a Pi session takes the run's steps.
        mounts: Where the definition and each of its mounts come from, root first.
        run_input: The input, inline or by name.
        step_total: Steps that the run has: more of them later are progress.
        resume: What the run did before; None for a run that no runner began.
    """

    run_id: str
    tag: Literal["start", "resume", "restart"]
    project_path: str
    definition_digest: str
    definition_hash: bytes
    launch_options_hash: bytes
    execution_mode: Literal["interactive", "headless"]
    mounts: tuple[Mount, ...]
    run_input: Ref
    step_total: int
    resume: Resume | None


class _Launch(NamedTuple):
    run_id: str
    resource_id: str
    run_revision: int
    project_path: str
    definition_digest: bytes
    definition_hash: bytes
    launch_options_hash: bytes
    execution_mode: Literal["interactive", "headless"]
    lineage_kind: str | None
    started_at: int | None
    input_hash: bytes
    input_media: str
    input_bytes: int
    input_content: bytes | None

    @property
    def run_input(self) -> Value:
        """The input."""
        value = Value.of(self.input_hash, self.input_media, self.input_bytes, self.input_content)
        assert value is not None
        return value

    @property
    def tag(self) -> Literal["start", "resume", "restart"]:
        """How the run begins or goes on."""
        if self.started_at is not None:
            return "resume"
        return "restart" if self.lineage_kind == "restart" else "start"


class _Source(NamedTuple):
    mount_path: str
    source_type: Literal["builtin", "file"]
    source_ref: str
    source_revision: str


class _Answered(NamedTuple):
    attempt_id: str
    node_path: str
    visit_number: int
    request_id: str
    answer_hash: bytes
    answer_media: str
    answer_bytes: int
    answer_content: bytes | None


class _Closed(NamedTuple):
    attempt_id: str
    node_path: str
    visit_number: int
    request_id: str
    error_hash: bytes


class _Inline:
    """Decides which values travel inside the envelope: up to 16 KiB each, 256 KiB in all."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._bytes_left = LAUNCH_INLINE_BYTES_MAX

    def take(self, bytes_needed: int) -> bool:
        """Return whether there was room, and use it."""
        if bytes_needed > self._bytes_left:
            return False
        self._bytes_left -= bytes_needed
        return True

    def ref(self, value: Value) -> Ref:
        """Return a value, or its name when it does not fit."""
        is_small = value.media_type == "application/json" and value.byte_length <= INLINE_BYTES_MAX
        if is_small and self.take(value.byte_length):
            return JsonRef(value=canonical.fragment(value.load(self._read)))
        return BlobRef(
            sha256=value.digest.hex(),
            content_bytes=value.byte_length,
            media_type=value.media_type,
        )


def launch_facts(read: Read, run_id: str) -> LaunchFacts:
    """Return what a launch of a run begins with.

    Args:
        read: One consistent read, best the one that decided the claim.
        run_id: The run.

    Returns:
        The facts. The answer that the run goes on with is the first to travel inside, then the
        input, then the outputs, newest first.

    Raises:
        NotFound: There is no such run.
    """
    row = read.one(_Launch, SQL["launch"], run_id=run_id, carried_bytes=CARRIED_BYTES_MAX)
    if row is None:
        raise NotFound(f"There is no run {run_id}.", code="runMissing", field="runId")
    inline = _Inline(read)
    step = last_step(read, run_id)
    total = step.step_index + 1 if step is not None else 0
    answered = _answered(read, run_id, inline)
    run_input = inline.ref(row.run_input)
    return LaunchFacts(
        run_id=run_id,
        tag=row.tag,
        project_path=row.project_path,
        definition_digest=f"sha256:{row.definition_digest.hex()}",
        definition_hash=row.definition_hash,
        launch_options_hash=row.launch_options_hash,
        execution_mode=row.execution_mode,
        mounts=_mounts(read, run_id),
        run_input=run_input,
        step_total=total,
        resume=_resume(read, row, total, answered, inline) if row.tag == "resume" else None,
    )


def _mounts(read: Read, run_id: str) -> tuple[Mount, ...]:
    """Return where the definition and each of its mounts come from."""
    return tuple(
        Mount(
            mount=source.mount_path,
            source=WorkflowSource(
                type=source.source_type, ref=source.source_ref, revision=source.source_revision
            ),
        )
        for source in read.all(_Source, SQL["sources"], run_id=run_id)
    )


def _answered(read: Read, run_id: str, inline: _Inline) -> OpenVisit | None:
    """Return the attempt that goes on with an accepted answer, or None."""
    row = read.one(_Answered, SQL["answered"], run_id=run_id, carried_bytes=CARRIED_BYTES_MAX)
    if row is None:
        return None
    answer = Value.of(row.answer_hash, row.answer_media, row.answer_bytes, row.answer_content)
    assert answer is not None
    return OpenVisit(
        attempt_id=row.attempt_id,
        node_path=row.node_path,
        visit=row.visit_number,
        tries=visit_tries(read, run_id, row.node_path, row.visit_number),
        request=row.request_id,
        accepted=inline.ref(answer),
    )


def _closed(read: Read, run_id: str) -> OpenVisit | None:
    """Return the attempt that ends because its question closed without an answer, or None."""
    row = read.one(_Closed, SQL["closed"], run_id=run_id)
    if row is None:
        return None
    stored = read.document(StoredFailure.parse, row.error_hash)
    return OpenVisit(
        attempt_id=row.attempt_id,
        node_path=row.node_path,
        visit=row.visit_number,
        tries=visit_tries(read, run_id, row.node_path, row.visit_number),
        request=row.request_id,
        closed=NodeResult(
            outcome=closed_outcome(stored.code), error=Failure.of(stored.code, stored.message)
        ),
    )


def _resume(
    read: Read, row: _Launch, total: int, answered: OpenVisit | None, inline: _Inline
) -> Resume:
    """Return what the run did before this launch."""
    snapshot = read.document(Snapshot.parse, row.definition_hash)
    heads = node_heads(read, row.run_id, snapshot.nodes)
    last = _last(read, row.run_id)
    left = answered or _closed(read, row.run_id) or _interrupted(read, row.run_id, heads)
    told = composed(read, row.run_id, snapshot, left, last)
    values = head_values(read, filter(told.sees_head, heads))
    outputs = {value.node_path: value.output for value in values}
    return Resume(
        run_revision=row.run_revision,
        step_total=total,
        visits={head.node_path: head.visit_number for head in heads},
        attempts={head.node_path: head.attempt_number for head in heads},
        outputs={
            path: inline.ref(output) for path, output in outputs.items() if output is not None
        },
        results={value.node_path: _result(read, value, inline) for value in values},
        mounts=mount_states(read, snapshot, told, total, inline.ref) or None,
        exited=told.exited or None,
        settings=settings_scopes(read, row.run_id, snapshot, inline.ref) or None,
        last=last,
        open=left,
    )


def _result(read: Read, value: HeadValue, inline: _Inline) -> NodeResult:
    """Return how a node's newest settled attempt ended; a message that does not fit is cut."""
    outcome = NODE_OUTCOME[value.status]
    if value.error is None:
        return NodeResult(outcome=outcome)
    stored = StoredFailure.parse(value.error.load(read))
    fits = inline.take(value.error.byte_length)
    message = stored.message if fits else stored.message[:TITLE_CHARS_MAX]
    return NodeResult(outcome=outcome, error=Failure.of(stored.code, message))


def _last(read: Read, run_id: str) -> Last | None:
    """Return the visit that settled last, or None before the first step."""
    step = last_step(read, run_id)
    if step is None:
        return None
    return Last(
        node_path=step.node_id,
        visit=step.visit_number,
        tries=visit_tries(read, run_id, step.node_id, step.visit_number),
        outcome=NODE_OUTCOME[step.status],
    )


def _interrupted(read: Read, run_id: str, heads: Sequence[Head]) -> OpenVisit | None:
    """Return the visit that a lost runner left, or None.

    The route leads back to it until a new attempt of it begins, so no second node can be left so.
    """
    left = [head for head in heads if head.status == "interrupted"]
    assert len(left) <= 1, left
    if not left:
        return None
    head = left[0]
    return OpenVisit(
        attempt_id=head.attempt_id,
        node_path=head.node_path,
        visit=head.visit_number,
        tries=visit_tries(read, run_id, head.node_path, head.visit_number),
    )
