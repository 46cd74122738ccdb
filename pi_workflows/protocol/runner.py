"""The private protocol between the server and the runner of one run generation.

Every frame, and the launch.

The runner protocol, `pi-workflows.runner.v1`. The channel itself is the runner's authority: no
token is in any frame, and the server keeps the expected revision. What a runner proposes is in
`proposals`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias, cast

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid, ProtocolViolation
from pi_workflows.base.limits import RUNNER_LOG_BYTES_MAX
from pi_workflows.definition.source import SourceFile, WorkflowSource
from pi_workflows.protocol import frames
from pi_workflows.protocol.content import ContentGet, ContentMissing, ContentPart, ContentPut, Ref
from pi_workflows.protocol.proposals import (
    EffectReservation,
    Failure,
    NodeOutcome,
    Propose,
    SettingsNow,
)
from pi_workflows.protocol.wire import (
    AbsolutePath,
    Count,
    DefinitionDigest,
    Id,
    JsonObject,
    Many,
    Maybe,
    Number,
    Text,
    WireModel,
)

SCHEMA: Final = "pi-workflows.runner.v1"


def _log_text(value: str) -> str:
    """Refuse a log line over its limit."""
    if len(canonical.utf8(value)) > RUNNER_LOG_BYTES_MAX:
        raise PydanticCustomError("text_long", "is over its limit")
    return value


class Mount(WireModel):
    """Where one definition of a composition comes from; the root's mount is empty text."""

    mount: str
    source: WorkflowSource


class NodeResult(WireModel):
    """How the newest attempt of a node ended."""

    outcome: NodeOutcome
    error: Maybe[Failure] = None


class Last(WireModel):
    """The visit that settled last: route and retry follow from it."""

    node_path: Text
    visit: Number
    tries: Number
    outcome: NodeOutcome


class OpenVisit(WireModel):
    """A visit that is not settled.

    With `accepted` its attempt goes on with that answer, with `closed` it ends so, as its request
    closed without one; else a new attempt of it starts.

    `tries` counts the visit's settled attempts; `request` is the request that the attempt waited
    for.
    """

    attempt_id: Id
    node_path: Text
    visit: Number
    tries: Count
    request: Maybe[Id] = None
    accepted: Maybe[Ref] = None
    closed: Maybe[NodeResult] = None


class MountState(WireModel):
    """An included workflow before this launch.

    `steps` are those of its open invocation; `exit` and `output` are how it was left last, in the
    current invocation of the workflow around it.
    """

    steps: Maybe[Count] = None
    exit: Maybe[Text] = None
    output: Maybe[Ref] = None


class SettingsScope(WireModel):
    """The settings of a workflow's newest invocation, as they stand at the launch."""

    scope_id: Text
    mount_path: str
    invocation: Number
    change_number: Count
    value: Ref


class Resume(WireModel):
    """What the run did before this launch. The maps are by full path.

    Of included workflows `outputs` and `results` hold those of open invocations only. `exited` is
    the newest visit of each exit's node that ended well: invocations are numbered by it.
    """

    run_revision: Count
    step_total: Count
    visits: dict[str, Number]
    attempts: dict[str, Number]
    outputs: dict[str, Ref]
    results: dict[str, NodeResult]
    mounts: Maybe[dict[str, MountState]] = None
    exited: Maybe[dict[str, Number]] = None
    settings: Maybe[Many[SettingsScope]] = None
    last: Maybe[Last] = None
    open: Maybe[OpenVisit] = None


class LaunchLimits(WireModel):
    """Bounds that held when the run was launched, kept with its envelope."""

    output_bytes_max: Number
    proposals_ahead_max: Number


class Launch(WireModel):
    """The first frame that a runner gets. Its stored form is exactly this frame."""

    type: Literal["launch"] = "launch"
    worker_epoch: Id
    run_id: Id
    generation: Number
    tag: Literal["start", "resume", "restart"]
    project_path: AbsolutePath
    source_files: Many[SourceFile]
    mounts: Many[Mount]
    definition_digest: DefinitionDigest
    input: Ref
    launch_options: JsonObject
    resume: Maybe[Resume] = None
    limits: LaunchLimits


class Ready(WireModel):
    """Every hash was verified and the definition is loaded; the run starts or goes on."""

    type: Literal["ready"] = "ready"
    definition_digest: DefinitionDigest
    mounts: Many[Mount]


class Failed(WireModel):
    """Nothing ran.

    The source or the definition is not the one that was launched, or does not load.
    """

    type: Literal["failed"] = "failed"
    code: Literal["workflowSourceChanged", "definitionChanged", "importError"]
    message: Text


class Result(WireModel):
    """The answer to one proposal, sent after its commit."""

    type: Literal["result"] = "result"
    seq: Number
    outcome: Literal["accepted", "adopted", "rejected", "claimLost"]
    run_revision: Count
    detail: Maybe[Failure] = None
    values: Maybe[EffectReservation | SettingsNow] = None


class Child(WireModel):
    """A shell's process. It may exec only after its `starting` was answered by `registered`."""

    type: Literal["child"] = "child"
    state: Literal["starting", "registered", "ended"]
    pid: Number
    start_identity: Text
    process_group: Number
    attempt_id: Id


class Stop(WireModel):
    """Ends the runner: it stops its shells, proposes nothing new and exits 0."""

    type: Literal["stop"] = "stop"
    reason: Literal["pause", "cancel", "timeout", "shutdown"]
    grace_ms: Count


class Log(WireModel):
    """A line for the server's log."""

    type: Literal["log"] = "log"
    level: Literal["debug", "info", "warning", "error"]
    text: Annotated[str, AfterValidator(_log_text)]


FromServer: TypeAlias = Launch | Result | ContentPart | ContentMissing | Child | Stop
"""What a runner may get."""

FromRunner: TypeAlias = Ready | Failed | Propose | ContentPut | ContentGet | Child | Log
"""What the server may get."""

_FROM_SERVER: Final[Mapping[str, type[FromServer]]] = {
    "launch": Launch,
    "result": Result,
    "content.part": ContentPart,
    "child": Child,
    "stop": Stop,
}

_FROM_RUNNER: Final[Mapping[str, type[FromRunner]]] = {
    "ready": Ready,
    "failed": Failed,
    "propose": Propose,
    "content.put": ContentPut,
    "content.get": ContentGet,
    "child": Child,
    "log": Log,
}


def encode(message: FromServer | FromRunner) -> bytes:
    """Write a frame of this protocol, with its line feed. Raises as `frames.encode` does."""
    return frames.encode({"schema": SCHEMA, **message.document()})


def decode_from_server(frame: frames.Frame) -> FromServer:
    """Read a frame that a runner got.

    Args:
        frame: What FrameReader gave.

    Returns:
        The message.

    Raises:
        ProtocolViolation: Another schema, a type that the server never sends, or members that do
            not fit.
    """
    body = frame.body(SCHEMA)
    kind = _FROM_SERVER.get(_type(body))
    if kind is ContentPart and "error" in body:
        kind = ContentMissing
    return cast("FromServer", _parse(kind, body))


def decode_from_runner(frame: frames.Frame) -> FromRunner:
    """Read a frame that the server got from a runner.

    Returns and raises as `decode_from_server`.
    """
    body = frame.body(SCHEMA)
    return cast("FromRunner", _parse(_FROM_RUNNER.get(_type(body)), body))


def _type(body: Mapping[str, Json]) -> str:
    """Return the type of a message, or text that no type has."""
    value = body.get("type")
    return value if isinstance(value, str) else ""


def _parse(kind: type[WireModel] | None, body: dict[str, Json]) -> WireModel:
    """Read a message of a known type."""
    if kind is None:
        raise ProtocolViolation("a message of unknown type", code="unknownType")
    try:
        return kind.parse(body)
    except PayloadInvalid as error:
        # The field's path may hold a name that the peer chose.
        raise ProtocolViolation(
            f"a {body['type']} message does not fit its model",
            code="messageInvalid",
            field=error.field,
        ) from None
