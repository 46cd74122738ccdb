"""How a run comes to be.

Started from a definition, or restarted from the beginning of an earlier run.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal, NamedTuple

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import (
    IdempotencyConflict,
    Outcome,
    RevisionConflict,
    TransitionDenied,
)
from pi_workflows.base.sql import Read
from pi_workflows.domain.effect.state import blocking_effect
from pi_workflows.domain.fact import Command, Context, Decided, Draft
from pi_workflows.domain.message.recovery import Handoff, handoff
from pi_workflows.domain.message.state import message_state
from pi_workflows.domain.rows import (
    BindingRow,
    DefinitionRow,
    ProjectRow,
    QueueRow,
    RunRow,
    RunStatus,
    SourceRow,
)
from pi_workflows.domain.run.events import RunQueued
from pi_workflows.domain.run.state import QUEUE_TERMINAL, SQL, RunState, run_state


@dataclass(frozen=True, slots=True)
class Source:
    """Where a workflow, or one of its mounts, comes from.

    Attributes:
        mount_path: Path of the mount; empty for the workflow itself.
        source_type: `file` or `builtin`.
        source_ref: Absolute path, or the built-in's name.
        source_revision: SHA-256 over the list of its files, hex.
    """

    mount_path: str
    source_type: Literal["builtin", "file"]
    source_ref: str
    source_revision: str


@dataclass(frozen=True, slots=True)
class StartRun(Command):
    """Queue a new run. Every value was checked and encoded before.

    Attributes:
        project_path: Absolute path of the project directory.
        workflow_name: The workflow's name.
        workflow_ref: What the caller named it by.
        sources: Root first, then the mounts.
        definition: The definition snapshot.
        run_input: The workflow's input.
        launch_options: Source files and the client's environment.
        title: What people call the run.
        origin_session_id: The session it belongs to, or `local-` and the run ID.
        execution_mode: `interactive` reserves the session.
        recovery_message_id: The message about a run's end from which the session launches this one
            by itself; None for everybody else.
    """

    project_path: str
    workflow_name: str
    workflow_ref: str
    sources: tuple[Source, ...]
    definition: Blob
    run_input: Blob
    launch_options: Blob
    title: str | None
    origin_session_id: str
    execution_mode: Literal["interactive", "headless"]
    recovery_message_id: str | None = None


@dataclass(frozen=True, slots=True)
class RestartRun(Command):
    """Queue a new run from the beginning of one that ended.

    Attributes:
        parent_revision: The parent's revision as the caller read it.
        recovery_message_id: The message about the parent's end from which its session restarts it
            by itself; None for everybody else.
    """

    parent_revision: int
    recovery_message_id: str | None = None


class _Identity(NamedTuple):
    run_id: str
    status: RunStatus
    revision: int
    definition_digest: bytes
    input_hash: bytes
    canonical_path: str | None
    execution_mode: str
    origin_session_id: str


class _Origin(NamedTuple):
    run_id: str
    project_id: str
    canonical_path: str
    project_created_at: int
    root_run_id: str
    restart_number: int
    definition_digest: bytes
    workflow_name: str
    definition_hash: bytes
    definition_created_at: int
    workflow_ref: str
    launch_options_hash: bytes
    title: str | None
    input_hash: bytes
    execution_mode: Literal["interactive", "headless"]
    origin_session_id: str


class _Source(NamedTuple):
    mount_path: str
    source_type: Literal["builtin", "file"]
    source_ref: str
    source_revision: str


def start_run(command: StartRun, context: Context, read: Read) -> Decided:
    """Decide to queue a run; the same run under the same ID is adopted.

    Raises:
        IdempotencyConflict: `runIdTaken`, the ID names another run.
        RevisionConflict: `sessionBusy`, the session has an interactive run that has not ended.
        NotFound, TransitionDenied, RevisionConflict, LimitExceeded: As `handoff`, of a launch from
            a run's end.
    """
    known = read.one(_Identity, SQL["run_identity"], run_id=command.run_id)
    if known is not None:
        return _adopted(read, command, known)
    origin = _handoff(read, command.recovery_message_id, command.origin_session_id)
    if origin is not None and origin.known_run_id is not None:
        launched = run_state(read, origin.known_run_id)
        return Decided(
            receipt={"runId": launched.run_id, "status": launched.status},
            outcome=Outcome.ADOPTED,
        )
    session = command.origin_session_id if command.execution_mode == "interactive" else None
    _require_free_session(read, session)
    at_ms = context.at_ms
    event = RunQueued(
        run=_first_row(command, origin, at_ms),
        project=_project(read, command.project_path, at_ms),
        definition=_definition(read, command, at_ms),
        sources=tuple(
            SourceRow(
                run_id=command.run_id,
                mount_path=source.mount_path,
                source_type=source.source_type,
                source_ref=source.source_ref,
                source_revision=source.source_revision,
            )
            for source in command.sources
        ),
        binding=BindingRow(
            run_id=command.run_id,
            origin_session_id=command.origin_session_id,
            execution_mode=command.execution_mode,
            created_at=at_ms,
        ),
        queue=_queue(command.run_id, session, at_ms),
    )
    return Decided(
        drafts=(Draft("run", command.run_id, event, command.run_id),),
        blobs=(command.definition, command.run_input, command.launch_options),
        receipt={"runId": command.run_id, "status": "queued"},
    )


def _first_row(command: StartRun, origin: Handoff | None, at_ms: int) -> RunRow:
    """Return a new run as it is queued."""
    return RunRow(
        run_id=command.run_id,
        resource_id=ids.resource_id("run", command.run_id),
        project_id=ids.project_id(command.project_path),
        parent_run_id=None,
        root_run_id=command.run_id,
        recovery_root_run_id=origin.root_run_id if origin else None,
        recovery_source_message_id=command.recovery_message_id,
        lineage_kind=None,
        restart_number=0,
        parent_run_revision=None,
        definition_digest=command.definition.hex,
        workflow_ref=command.workflow_ref,
        launch_options_hash=command.launch_options.hex,
        title=command.title,
        status="queued",
        paused=0,
        status_detail=None,
        input_hash=command.run_input.hex,
        final_output_hash=None,
        error_hash=None,
        created_at=at_ms,
        updated_at=at_ms,
        finished_at=None,
    )


def _handoff(read: Read, message_id: str | None, session_id: str) -> Handoff | None:
    """Return what a launch is bound to that a session makes by itself; None for any other."""
    return None if message_id is None else handoff(read, message_id, session_id)


def _adopted(read: Read, command: StartRun, known: _Identity) -> Decided:
    """Return the existing run when it is the same one (engine contract, "start")."""
    asked = (
        command.definition.digest,
        command.run_input.digest,
        command.project_path,
        command.execution_mode,
        command.origin_session_id,
        tuple(command.sources),
    )
    stored = (
        known.definition_digest,
        known.input_hash,
        known.canonical_path,
        known.execution_mode,
        known.origin_session_id,
        tuple(
            Source(**source._asdict())
            for source in read.all(_Source, SQL["run_sources"], run_id=known.run_id)
        ),
    )
    if asked != stored:
        raise IdempotencyConflict(
            f"Run ID {command.run_id} belongs to a run with other content.",
            code="runIdTaken",
            field="runId",
            hint="Choose another --run-id, or leave it out.",
        )
    return Decided(receipt={"runId": known.run_id, "status": known.status}, outcome=Outcome.ADOPTED)


def _require_free_session(read: Read, session: str | None) -> None:
    """Refuse a second interactive run in one session."""
    if session is None:
        return
    busy = read.one(str, SQL["session_run"], session_id=session)
    if busy is not None:
        raise RevisionConflict(
            f"The session already runs {busy}.",
            code="sessionBusy",
            hint=f"Wait for it, or end it with: pi-workflows cancel {busy}",
        )


def _project(read: Read, path: str, at_ms: int) -> ProjectRow:
    """Return the complete project row, as it stands or as it will."""
    key = ids.project_id(path)
    known = read.one(int, SQL["project_created"], project_id=key)
    return ProjectRow(
        project_id=key, canonical_path=path, created_at=at_ms if known is None else known
    )


def _definition(read: Read, command: StartRun, at_ms: int) -> DefinitionRow:
    """Return the complete definition row, as it stands or as it will."""
    digest = command.definition
    known = read.one(int, SQL["definition_created"], definition_digest=digest.digest)
    return DefinitionRow(
        definition_digest=digest.hex,
        workflow_name=command.workflow_name,
        definition_hash=digest.hex,
        created_at=at_ms if known is None else known,
    )


def _queue(run_id: str, session: str | None, at_ms: int) -> QueueRow:
    """Return a new place in the queue."""
    return QueueRow(
        run_id=run_id,
        status="queued",
        available_at=at_ms,
        origin_session_id=session,
        consecutive_errors=0,
        error_code=None,
        error_hash=None,
        created_at=at_ms,
        updated_at=at_ms,
        started_at=None,
        finished_at=None,
    )


def restart_id(parent_run_id: str, parent_revision: int) -> str:
    """Return the ID of the one run that restarts a parent at this revision."""
    key = canonical.encode([parent_run_id, parent_revision])
    return f"restart-{hashlib.sha256(key).hexdigest()}"


def restart_run(command: RestartRun, context: Context, read: Read) -> Decided:
    """Decide to queue a run that starts over with the parent's definition and input.

    Raises:
        NotFound: There is no such parent.
        RevisionConflict: The parent moved on, `alreadyRestarted`, or the session is busy.
        IdempotencyConflict: `runIdTaken`, somebody gave the restart's derived ID to another run.
        TransitionDenied: `runNotTerminal`, `effectUnsettled`, or of a restart by itself
            `runCancelled` or what `handoff` refuses.
        LimitExceeded: `recoveryLimit`.
    """
    parent = run_state(read, command.run_id)
    child_id = restart_id(command.run_id, command.parent_revision)
    child = read.one(str, SQL["restart_child"], run_id=command.run_id)
    if child is not None:
        return _existing_child(read, command, child, child_id)
    if not parent.is_terminal or parent.queue_status not in QUEUE_TERMINAL:
        raise TransitionDenied(
            f"Run {command.run_id} has not ended ({parent.status}).",
            code="runNotTerminal",
            hint=f"Cancel it first with: pi-workflows cancel {command.run_id}",
        )
    if command.parent_revision != parent.revision:
        raise RevisionConflict(
            f"Run {command.run_id} is at revision {parent.revision}, not the one asked for.",
            field="expectedRevision",
        )
    effect = blocking_effect(read, parent.resource_id)
    if effect is not None:
        raise TransitionDenied(
            f"Effect {effect} of the run is not settled.",
            code="effectUnsettled",
            hint=f"Settle it with: pi-workflows effects resolve {effect}",
        )
    if read.one(_Identity, SQL["run_identity"], run_id=child_id) is not None:
        raise IdempotencyConflict(
            f"Run ID {child_id}, which the restart would have, belongs to another run.",
            code="runIdTaken",
        )
    recovery = _restart_handoff(read, command, parent)
    if recovery is not None and recovery.known_run_id is not None:
        return _adopted_child(read, command, recovery.known_run_id)
    origin = read.one(_Origin, SQL["restart_origin"], run_id=command.run_id)
    assert origin is not None, "a run without its project or definition"
    _require_free_session(read, parent.origin_session_id if _reserves(origin) else None)
    event = _restarted(read, origin, command, child_id, context.at_ms)
    if recovery is not None:
        bound = {
            "recovery_root_run_id": recovery.root_run_id,
            "recovery_source_message_id": recovery.message_id,
        }
        event = event.model_copy(update={"run": event.run.model_copy(update=bound)})
    return Decided(
        drafts=(Draft("run", child_id, event, child_id),),
        receipt={
            "runId": child_id,
            "parentRunId": command.run_id,
            "restartNumber": origin.restart_number + 1,
        },
    )


def _restart_handoff(read: Read, command: RestartRun, parent: RunState) -> Handoff | None:
    """Return what a restart is bound to that a session makes by itself; None for any other."""
    if command.recovery_message_id is None:
        return None
    if parent.status == "cancelled":
        raise TransitionDenied(
            "A cancelled run is never restarted by itself.",
            code="runCancelled",
            hint="Ask the person; their own request starts anew.",
        )
    if message_state(read, command.recovery_message_id).run_id != parent.run_id:
        raise TransitionDenied("The message tells another run's end.", code="messageTarget")
    return handoff(read, command.recovery_message_id, parent.origin_session_id)


def _reserves(origin: _Origin) -> bool:
    """Whether the run reserves its session."""
    return origin.execution_mode == "interactive"


def _existing_child(read: Read, command: RestartRun, existing: str, child_id: str) -> Decided:
    """Adopt the restart that this very request made earlier; refuse another one."""
    if existing != child_id:
        raise RevisionConflict(
            f"Run {command.run_id} was already restarted as {existing}.",
            code="alreadyRestarted",
            hint=f"See it with: pi-workflows show {existing}",
        )
    return _adopted_child(read, command, existing)


def _adopted_child(read: Read, command: RestartRun, existing: str) -> Decided:
    """Return the run that exists already in place of the restart."""
    child = run_state(read, existing)
    return Decided(
        receipt={
            "runId": existing,
            "parentRunId": command.run_id,
            "restartNumber": child.restart_number,
        },
        outcome=Outcome.ADOPTED,
    )


def _restarted(
    read: Read, origin: _Origin, command: RestartRun, child_id: str, at_ms: int
) -> RunQueued:
    """Return the fact of a restart.

    The parent's definition, input and options, none of its history.
    """
    session = origin.origin_session_id if _reserves(origin) else f"local-{child_id}"
    sources = read.all(_Source, SQL["run_sources"], run_id=origin.run_id)
    return RunQueued(
        run=RunRow(
            run_id=child_id,
            resource_id=ids.resource_id("run", child_id),
            project_id=origin.project_id,
            parent_run_id=origin.run_id,
            root_run_id=origin.root_run_id,
            recovery_root_run_id=None,
            recovery_source_message_id=None,
            lineage_kind="restart",
            restart_number=origin.restart_number + 1,
            parent_run_revision=command.parent_revision,
            definition_digest=origin.definition_digest.hex(),
            workflow_ref=origin.workflow_ref,
            launch_options_hash=origin.launch_options_hash.hex(),
            title=origin.title,
            status="queued",
            paused=0,
            status_detail=None,
            input_hash=origin.input_hash.hex(),
            final_output_hash=None,
            error_hash=None,
            created_at=at_ms,
            updated_at=at_ms,
            finished_at=None,
        ),
        project=ProjectRow(
            project_id=origin.project_id,
            canonical_path=origin.canonical_path,
            created_at=origin.project_created_at,
        ),
        definition=DefinitionRow(
            definition_digest=origin.definition_digest.hex(),
            workflow_name=origin.workflow_name,
            definition_hash=origin.definition_hash.hex(),
            created_at=origin.definition_created_at,
        ),
        sources=tuple(SourceRow(run_id=child_id, **source._asdict()) for source in sources),
        binding=BindingRow(
            run_id=child_id,
            origin_session_id=session,
            execution_mode=origin.execution_mode,
            created_at=at_ms,
        ),
        queue=_queue(child_id, session if _reserves(origin) else None, at_ms),
    )
