"""Commands about a run: start it, pause it, let it go on, cancel it, start it over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from pi_workflows.base import canonical
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    AuthorityDenied,
    LimitExceeded,
    NotFound,
    PayloadInvalid,
    Refused,
)
from pi_workflows.base.limits import DEFINITION_BYTES_MAX, INPUT_BYTES_MAX, SOURCE_FILES_MAX
from pi_workflows.definition.digest import definition_digest
from pi_workflows.definition.paths import ROOT
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.definition.source import WorkflowSource, files_of, mount_revision
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.domain.run.start import RestartRun, Source, StartRun
from pi_workflows.domain.run.state import run_state
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.runs import LaunchOptions as LaunchingClient
from pi_workflows.protocol.runs import RunRestart, RunStart
from pi_workflows.server import sources
from pi_workflows.server.launch_options import LaunchOptions
from pi_workflows.server.operations.call import Call, known, replied
from pi_workflows.server.services import Services
from pi_workflows.views.launch import launch_facts


async def start(services: Services, call: Call) -> Reply:
    """Queue a run of a definition that a resolver read.

    Args:
        services: The server.
        call: `run.start`.

    Returns:
        The receipt of the new run, or of the same run that is there already.

    Raises:
        PayloadInvalid: The definition, its digest, its sources or the input contradict one another.
        LimitExceeded: A value is over its limit.
        Refused: `projectMissing`.
        Unavailable: As `Writer.submit`.
    """
    payload = call.read(RunStart)
    definition = _definition(payload)
    run_input = Blob.json(payload.input)
    _require_size("input", run_input, INPUT_BYTES_MAX)
    _require_sources(payload, definition)
    _require_project(payload.project_path)
    options = LaunchOptions(
        environment=_environment(payload.launch_options),
        source_files=payload.source_files,
    ).blob()
    command = StartRun(
        run_id=call.run_id,
        project_path=payload.project_path,
        workflow_name=payload.workflow_name,
        workflow_ref=payload.workflow_source_ref,
        sources=tuple(_source(mount, source) for mount, source in _sources(payload)),
        definition=definition,
        run_input=run_input,
        launch_options=options,
        title=payload.title,
        origin_session_id=payload.origin_session_id,
        execution_mode=payload.execution_mode,
        recovery_message_id=payload.recovery_source_message_id,
    )
    _require_session(call, payload.recovery_source_message_id)
    size_bytes = sum(len(blob.content) for blob in (definition, run_input, options))
    return replied(await services.writer.submit(call.order(command, size_bytes=size_bytes)))


async def pause(services: Services, call: Call) -> Reply:
    """Stop working on a run until it is resumed. Raises Unavailable as `Writer.submit`."""
    order = call.order(
        PauseRun(call.run_id, services.turns.elapsed_ms(call.run_id)), expects_run=True
    )
    return replied(await services.writer.submit(order))


async def resume(services: Services, call: Call) -> Reply:
    """Let a run go on, if its sources are as they were.

    Raises:
        TransitionDenied: `workflowSourceChanged`; nothing changed.
        IdempotencyConflict: The identity was used for another request.
        Unavailable: As `Writer.submit`.
    """
    if (reply := await known(services.writer, call.request)) is not None:
        return reply
    await _require_unchanged(services, call.run_id, ended=False)
    order = call.order(ResumeRun(call.run_id), expects_run=True)
    return replied(await services.writer.submit(order))


async def cancel(services: Services, call: Call) -> Reply:
    """End a run for good. Raises Unavailable as `Writer.submit`."""
    order = call.order(CancelRun(call.run_id), expects_run=True)
    return replied(await services.writer.submit(order))


async def restart(services: Services, call: Call) -> Reply:
    """Queue a new run from the beginning of one that ended, if its sources are as they were.

    Raises:
        As `resume`.
    """
    if (reply := await known(services.writer, call.request)) is not None:
        return reply
    await _require_unchanged(services, call.run_id, ended=True)
    revision = call.request.expected_revision
    assert revision is not None, "a restart without the revision that it needs"
    recovery = call.read(RunRestart).recovery_source_message_id
    _require_session(call, recovery)
    order = call.order(RestartRun(call.run_id, revision, recovery), expects_run=True)
    return replied(await services.writer.submit(order))


def _require_session(call: Call, recovery_message_id: str | None) -> None:
    """Refuse a launch from a run's end that no session makes. Raises AuthorityDenied."""
    if recovery_message_id is not None and call.speaker.session_id is None:
        raise AuthorityDenied(
            "Only the session that was told of a run's end launches from it by itself.",
            code="notCoordinator",
            field="recoverySourceMessageId",
        )


def _environment(given: LaunchingClient | None) -> dict[str, str]:
    """Return the client's variables; the model has refused every other name."""
    variables: dict[str, str] = {}
    if given is not None:
        variables.update(given.environment.items())
    return variables


def _definition(payload: RunStart) -> Blob:
    """Return the definition snapshot if it is one, and the one that its digest and name say."""
    # A JSON object is any JSON; the two types differ only in what a checker knows.
    content = canonical.encode(
        cast("Json", payload.definition_snapshot), field="definitionSnapshot"
    )
    definition = Blob.of(content, "application/json")
    _require_size("definitionSnapshot", definition, DEFINITION_BYTES_MAX)
    snapshot = Snapshot.parse(content)
    if snapshot.name != payload.workflow_name:
        raise _mismatch("workflowName", "is not the definition's name")
    # Both: what is stored is what was sent, and reading it again gives the same definition.
    named = {f"sha256:{definition.hex}", definition_digest(snapshot)}
    if named != {payload.definition_digest}:
        raise _mismatch("definitionDigest", "is not the digest of definitionSnapshot")
    return definition


def _sources(payload: RunStart) -> Iterator[tuple[str, WorkflowSource]]:
    """Yield where the definition and each of its mounts come from, the root first."""
    yield ROOT, payload.workflow_source
    for mount in payload.mounts or ():
        yield mount.mount, mount.source


def _source(mount: str, source: WorkflowSource) -> Source:
    return Source(
        mount_path=mount,
        source_type=source.type,
        source_ref=source.ref,
        source_revision=source.revision,
    )


def _require_sources(payload: RunStart, definition: Blob) -> None:
    """Refuse source files that are not the ones that the sources' revisions name."""
    files = payload.source_files
    if len(files) > SOURCE_FILES_MAX:
        raise LimitExceeded(
            f"sourceFiles: {len(files)} files are more than {SOURCE_FILES_MAX}",
            code="sourceFilesTooMany",
            field="sourceFiles",
        )
    mounts = [mount.path for mount in Snapshot.parse(definition.content).mounts]
    if [mount.mount for mount in payload.mounts or ()] != mounts:
        raise _mismatch("mounts", "are not the mounts of definitionSnapshot")
    if {file.mount for file in files} != {ROOT, *mounts}:
        raise _mismatch("sourceFiles", "are not the files of the workflow and its mounts")
    for mount, source in _sources(payload):
        field = f"mounts.{mount}" if mount else "workflowSource"
        own = files_of(files, mount)
        if source.revision != mount_revision(source.type, own):
            raise _mismatch(f"{field}.revision", "is not the revision of sourceFiles")
        if source.type == "file" and own[0].path != source.ref:
            raise _mismatch(f"{field}.ref", "is not the first of sourceFiles")


async def _require_unchanged(services: Services, run_id: str, *, ended: bool) -> None:
    """Refuse to go on with a run whose sources changed, if it would go on at all.

    A run that is not there, or not in the state that the command is for, is the decider's to
    refuse: that refusal is remembered.
    """
    with services.store.snapshot() as read:
        try:
            state = run_state(read, run_id)
        except NotFound:
            return
        if state.is_terminal != ended or state.is_claimed:
            return
        facts = launch_facts(read, run_id)
        options = read.document(LaunchOptions.parse, facts.launch_options_hash)
    await sources.require_unchanged(options.source_files)


def _require_project(path: str) -> None:
    """Refuse a project that is not there: no runner could start in it."""
    if not Path(path).is_dir():
        raise Refused(f"There is no directory {path}.", code="projectMissing", field="projectPath")


def _require_size(field: str, blob: Blob, limit_bytes: int) -> None:
    """Refuse a value that is over its limit."""
    if len(blob.content) > limit_bytes:
        raise LimitExceeded(
            f"{field}: {len(blob.content)} bytes are more than {limit_bytes}",
            code="valueTooLarge",
            field=field,
            hint="Put large data into a file and pass its path.",
        )


def _mismatch(field: str, reason: str) -> PayloadInvalid:
    """Return the error of parts that contradict one another."""
    return PayloadInvalid(f"{field}: {reason}", code="definitionMismatch", field=field)
