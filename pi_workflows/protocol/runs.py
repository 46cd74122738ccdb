"""Run commands: their payloads and their receipts."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from pi_workflows.base.limits import PAGE_ITEMS_MAX, TITLE_CHARS_MAX, WORKFLOW_NAME_CHARS_MAX
from pi_workflows.definition.source import SourceFile, WorkflowSource
from pi_workflows.protocol.runner import Mount
from pi_workflows.protocol.wire import (
    AbsolutePath,
    AnyJson,
    Count,
    DefinitionDigest,
    Id,
    JsonObject,
    Many,
    Maybe,
    Number,
    Payload,
    SessionPayload,
    Text,
    WireModel,
)

ENVIRONMENT_NAMES = ("PATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TZ")
"""The variables of a client that its run's programs get.

Nothing else of its environment is sent.
"""

EnvironmentName: TypeAlias = Literal["PATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TZ"]

RunStatus: TypeAlias = Literal[
    "queued", "running", "waiting", "completed", "failed", "timed_out", "cancelled"
]
"""The stored status of a run."""

Limit: TypeAlias = Annotated[int, Field(ge=1, le=PAGE_ITEMS_MAX)]
"""How many items a list may hold."""


class LaunchOptions(WireModel):
    """What the launching client decides about the run's processes."""

    environment: dict[EnvironmentName, str]


class RunStart(Payload):
    """`run.start`: what `workflow.resolve` answered, and where to run it."""

    project_path: AbsolutePath
    workflow_name: Annotated[str, Field(min_length=1, max_length=WORKFLOW_NAME_CHARS_MAX)]
    workflow_source_ref: Text
    workflow_source: WorkflowSource
    source_files: Annotated[Many[SourceFile], Field(min_length=1)]
    mounts: Maybe[Many[Mount]] = None
    definition_digest: DefinitionDigest
    definition_snapshot: JsonObject
    input: AnyJson
    title: Maybe[Annotated[str, Field(min_length=1, max_length=TITLE_CHARS_MAX)]] = None
    launch_options: Maybe[LaunchOptions] = None
    origin_session_id: Id
    execution_mode: Literal["interactive", "headless"]
    recovery_source_message_id: Maybe[Id] = None


class RunRestart(SessionPayload):
    """`run.restart`: a new run from the start, with the original input and definition.

    `recovery_source_message_id` names the message about its end from which its session restarts it
    by itself.
    """

    recovery_source_message_id: Maybe[Id] = None


class RunList(Payload):
    """`run.list`: the newest runs, as they stand in the queue."""

    limit: Maybe[Limit] = None


class CheckpointAnswer(SessionPayload):
    """`checkpoint.answer`: the answer to one request. An `input` that is left out is null."""

    request_id: Id
    submission_id: Id
    input: AnyJson = None


class RunStarted(WireModel):
    """Receipt of `run.start`."""

    run_id: Id
    status: RunStatus


class RunPaused(WireModel):
    """Receipt of `run.pause`."""

    run_id: Id
    status: Literal["parked"]
    paused: Literal[True]
    already_paused: bool
    detail: str


class RunWaitsAgain(WireModel):
    """Receipt of `run.resume` when the run waits for an answer."""

    run_id: Id
    status: Literal["parked"]
    paused: Literal[False]
    waiting_for_interaction: Literal[True]
    resumable: Literal[True]
    already_running: Literal[False]
    detail: str


class RunQueuedAgain(WireModel):
    """Receipt of `run.resume` when the run waits for capacity."""

    run_id: Id
    status: Literal["queued"]
    resumable: Literal[True]
    already_running: Literal[False]
    detail: str


class RunWasActive(WireModel):
    """Receipt of `run.resume` when the run was never stopped; its outcome is `adopted`."""

    run_id: Id
    active: Literal[True]
    resumable: Literal[False]
    already_running: Literal[True]
    detail: str


class RunCancelled(WireModel):
    """Receipt of `run.cancel`."""

    run_id: Id
    status: Literal["cancelled"]


class RunRestarted(WireModel):
    """Receipt of `run.restart`; `run_id` is the new run."""

    run_id: Id
    parent_run_id: Id
    restart_number: Number


class CheckpointAnswered(WireModel):
    """Receipt of `checkpoint.answer`."""

    request_id: Id
    run_id: Id


class QueueItem(WireModel):
    """A run as it stands in the queue.

    An item of `run.list` and the `queue` of a run view. Times are ms.
    """

    run_id: Id
    workflow_name: str
    workflow_source_ref: str
    initialized: bool
    definition_digest: DefinitionDigest
    status: Literal["queued", "starting", "running", "parked", "done", "failed", "cancelled"]
    origin_session_id: str | None
    execution_mode: Literal["interactive", "headless"]
    parent_run_id: str | None
    root_run_id: str
    lineage_kind: Literal["restart"] | None
    restart_number: Count
    parent_run_revision: Count | None
    error_code: str | None
    created_at: Count
    updated_at: Count
    started_at: Count | None
    finished_at: Count | None
