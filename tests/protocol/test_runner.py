"""Every frame and command of the private runner protocol, byte for byte."""

from __future__ import annotations

from typing import Final, cast, get_args

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.base.limits import PROPOSAL_COMMANDS_MAX, RUNNER_LOG_BYTES_MAX
from pi_workflows.definition.source import SourceFile, WorkflowSource
from pi_workflows.protocol import frames, runner
from pi_workflows.protocol.content import (
    BlobRef,
    ContentGet,
    ContentMissing,
    JsonRef,
    parts,
    puts,
    ref,
)
from pi_workflows.protocol.proposals import (
    BeginEffect,
    Command,
    EffectReservation,
    Failure,
    FinishAttempt,
    FinishRun,
    Notify,
    OpenSettings,
    Propose,
    Requeue,
    ReserveEffect,
    SettleEffect,
    StartAttempt,
    Update,
    WaitForInput,
)
from pi_workflows.protocol.runner import (
    Child,
    Failed,
    FromRunner,
    FromServer,
    Last,
    Launch,
    LaunchLimits,
    Log,
    Mount,
    NodeResult,
    OpenVisit,
    Ready,
    Result,
    Resume,
    Stop,
)

_DIGEST: Final = "sha256:" + "d" * 64
_MOUNT: Final = Mount(
    mount="",
    source=WorkflowSource(type="file", ref="/project/build_workflow.py", revision="a" * 64),
)
_CHILD: Final = Child(
    state="starting", pid=4_711, start_identity="815", process_group=4_711, attempt_id="attempt-1"
)
_BLOB: Final = Blob.json({"report": "ok"})

_LAUNCH: Final = Launch(
    worker_epoch="worker-1",
    run_id="build-1",
    generation=2,
    tag="resume",
    project_path="/project",
    source_files=(SourceFile(mount="", path="/project/build_workflow.py", sha256="f" * 64),),
    mounts=(_MOUNT,),
    definition_digest=_DIGEST,
    input=JsonRef(value=None),
    launch_options={},
    resume=Resume(
        run_revision=9,
        step_total=2,
        visits={"plan": 1, "review": 2},
        attempts={"plan": 1, "review": 3},
        outputs={"plan": BlobRef.of(_BLOB)},
        results={
            "plan": NodeResult(outcome="ok"),
            "review": NodeResult(outcome="failed", error=Failure(code="nodeFailed", message="no")),
        },
        last=Last(node_path="review", visit=2, tries=1, outcome="failed"),
        open=OpenVisit(
            attempt_id="attempt-3",
            node_path="review",
            visit=2,
            tries=1,
            request="request-1",
            accepted=JsonRef(value="yes"),
        ),
    ),
    limits=LaunchLimits(output_bytes_max=8_388_608, proposals_ahead_max=16),
)

_FROM_SERVER: Final[dict[str, FromServer]] = {
    "launch": _LAUNCH,
    "launch-first": _LAUNCH.model_copy(update={"tag": "start", "resume": None}),
    "result": Result(seq=1, outcome="accepted", run_revision=10),
    "result-refused": Result(
        seq=1,
        outcome="rejected",
        run_revision=10,
        detail=Failure(code="effectConflict", message="another request under this key"),
    ),
    "result-effect": Result(
        seq=2,
        outcome="adopted",
        run_revision=10,
        values=EffectReservation(
            effect_id="effect-1", status="applied", attempt_count=1, result=JsonRef(value=[1])
        ),
    ),
    "content.part": next(parts(_BLOB)),
    "content.part-missing": ContentMissing(sha256="0" * 64, error="the run does not name it"),
    "child-registered": _CHILD.model_copy(update={"state": "registered"}),
    "stop": Stop(reason="pause", grace_ms=5_000),
}

_COMMANDS: Final[tuple[Command, ...]] = (
    OpenSettings(mount_path="", invocation=1, initial=JsonRef(value={"merge": False})),
    StartAttempt(
        attempt_id="attempt-1",
        node_path="plan",
        visit=1,
        attempt_number=1,
        node_type="action",
        timeout_ms=900_000,
    ),
    FinishAttempt(
        attempt_id="attempt-1",
        outcome="failed",
        output=ref(_BLOB),
        receipt={"exitCode": 1},
        error=Failure(code="exitCode", message="the command failed"),
        elapsed_ns=1_500_000_000,
    ),
    Requeue(delay_ms=250),
    WaitForInput(attempt_id="attempt-1", kind="checkpoint", contract=JsonRef(value={"ask": "?"})),
    Notify(attempt_id="attempt-1", text=JsonRef(value="half done"), kind="progress", elapsed_ns=5),
    ReserveEffect(
        attempt_id="attempt-1",
        effect_type="repo.push",
        recovery="manual",
        request=BlobRef.of(_BLOB),
    ),
    BeginEffect(effect_id="effect-1", attempt_number=1),
    SettleEffect(
        effect_id="effect-1", attempt_number=1, outcome="applied", result=JsonRef(value=None)
    ),
    Update(attempt_id="attempt-1", type="progress", key="files", data={"completed": 3}),
    FinishRun(outcome="completed", output=ref(_BLOB)),
)

_FROM_RUNNER: Final[dict[str, FromRunner]] = {
    "ready": Ready(definition_digest=_DIGEST, mounts=(_MOUNT,)),
    "failed": Failed(code="workflowSourceChanged", message="build_workflow.py has changed"),
    "content.put": next(puts(_BLOB)),
    "content.get": ContentGet(sha256=_BLOB.hex),
    "child": _CHILD,
    "log": Log(level="info", text="loaded"),
    **{
        f"propose-{command.model_dump()['command']}": Propose(seq=1, commands=(command,))
        for command in _COMMANDS
    },
}


def _frame(value: dict[str, Json]) -> frames.Frame:
    """Return a frame as it would come from a peer."""
    return frames.decode(frames.encode(value)[:-1])


def _body(message: FromServer | FromRunner, change: dict[str, Json]) -> frames.Frame:
    """Return a message's frame with some members changed."""
    return _frame({"schema": runner.SCHEMA, **message.document(), **change})


@pytest.mark.parametrize("name", list(_FROM_SERVER))
def test_what_the_server_sends_has_these_bytes(name: str, snapshot: SnapshotAssertion) -> None:
    """The bytes of each frame are a contract; the runner reads the same message."""
    written = runner.encode(_FROM_SERVER[name])
    assert written.decode() == snapshot
    [frame] = frames.FrameReader().feed(written)
    assert runner.decode_from_server(frame) == _FROM_SERVER[name]


@pytest.mark.parametrize("name", list(_FROM_RUNNER))
def test_what_a_runner_sends_has_these_bytes(name: str, snapshot: SnapshotAssertion) -> None:
    """The bytes of each frame and command are a contract; the server reads the same message."""
    written = runner.encode(_FROM_RUNNER[name])
    assert written.decode() == snapshot
    [frame] = frames.FrameReader().feed(written)
    read = runner.decode_from_runner(frame)
    assert runner.encode(read) == written
    assert type(read) is type(_FROM_RUNNER[name])


def test_every_frame_and_command_is_shown() -> None:
    """No model of the protocol is without its bytes above."""
    assert {type(message) for message in _FROM_SERVER.values()} == set(get_args(FromServer))
    assert {type(message) for message in _FROM_RUNNER.values()} == set(get_args(FromRunner))
    assert {type(command) for command in _COMMANDS} == set(get_args(get_args(Command)[0]))


def test_each_side_takes_only_what_the_other_sends() -> None:
    """A frame in the wrong direction is a violation; `child` alone goes both ways."""
    for name, message in _FROM_SERVER.items():
        if not name.startswith("child"):
            with pytest.raises(ProtocolViolation) as violation:
                runner.decode_from_runner(_body(message, {}))
            assert violation.value.reason_code == "unknownType"
    for name, proposed in _FROM_RUNNER.items():
        if name != "child":
            with pytest.raises(ProtocolViolation) as violation:
                runner.decode_from_server(_body(proposed, {}))
            assert violation.value.reason_code == "unknownType"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ready", {"extra": 1}),
        ("ready", {"definitionDigest": "d" * 64}),
        ("failed", {"code": "other"}),
        ("failed", {"message": ""}),
        ("child", {"state": "unknown"}),
        ("child", {"pid": 0}),
        ("log", {"text": "é" * RUNNER_LOG_BYTES_MAX}),
        ("log", {"level": None}),
        ("content.put", {"bytes": -1}),
        ("content.put", {"bytes": 8 * 1024 * 1024 + 1}),
        ("content.put", {"sha256": "A" * 64}),
        ("content.put", {"mediaType": "text/html"}),
        ("propose-requeue", {"seq": 0}),
        ("propose-requeue", {"seq": 1.5}),
        ("propose-requeue", {"commands": []}),
        ("propose-requeue", {"commands": [{"command": "requeue", "delayMs": 0}]}),
        ("propose-requeue", {"commands": [{"command": "requeue"}]}),
        ("propose-requeue", {"commands": [{"command": "unknown"}]}),
        ("propose-requeue", {"commands": [{"delayMs": 1}]}),
        ("propose-requeue", {"commands": [{"command": "requeue", "delayMs": 1, "x": 1}]}),
        (
            "propose-requeue",
            {"commands": [{"command": "requeue", "delayMs": 1}] * (PROPOSAL_COMMANDS_MAX + 1)},
        ),
    ],
)
def test_a_frame_that_does_not_fit_is_a_violation(name: str, change: Json) -> None:
    """Each member is checked, in frames and in commands."""
    frame = _body(_FROM_RUNNER[name], cast("dict[str, Json]", change))
    with pytest.raises(ProtocolViolation) as violation:
        runner.decode_from_runner(frame)
    assert violation.value.reason_code == "messageInvalid"


@pytest.mark.parametrize(
    "reference",
    [{}, {"json": 1, "sha256": "0" * 64}, {"sha256": "0" * 64}, {"json": 1, "x": 1}, [], None, "x"],
)
def test_a_reference_has_one_form(reference: Json) -> None:
    """A value is inline or named, never both, never neither."""
    finish: dict[str, Json] = {"command": "finishRun", "outcome": "completed", "output": reference}
    with pytest.raises(ProtocolViolation):
        runner.decode_from_runner(_body(_FROM_RUNNER["propose-finishRun"], {"commands": [finish]}))


@pytest.mark.parametrize("kind", ["unknown", None, 1, {}])
def test_a_frame_of_unknown_type_is_a_violation(kind: Json) -> None:
    """The set of frames is closed."""
    for decode in (runner.decode_from_runner, runner.decode_from_server):
        with pytest.raises(ProtocolViolation) as violation:
            decode(_frame({"schema": runner.SCHEMA, "type": kind}))
        assert violation.value.reason_code == "unknownType"
    with pytest.raises(ProtocolViolation) as violation:
        runner.decode_from_runner(_frame({"schema": "pi-workflows.client.v1", "type": "ready"}))
    assert violation.value.reason_code == "wrongSchema"


def test_a_long_message_loses_its_middle() -> None:
    """A failure of any length can be told: both ends of its message stay."""
    failure = Failure.of("exitCode", "start" + "x" * 100_000 + "end")
    assert failure.message.startswith("start")
    assert failure.message.endswith("end")
    assert Failure.parse(failure.document()) == failure
    assert Failure.of("exitCode", "short").message == "short"
