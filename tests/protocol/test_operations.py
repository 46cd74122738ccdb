"""The table of operations: what each needs, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.limits import (
    EVIDENCE_CHARS_MAX,
    PAGE_ITEMS_MAX,
    SEARCH_QUERY_CHARS_MAX,
)
from pi_workflows.protocol.operations import (
    OPERATIONS,
    Need,
    Operation,
    OperationClass,
    read_payload,
)
from pi_workflows.protocol.wire import SessionPayload

_START: Final[dict[str, Json]] = {
    "projectPath": "/project",
    "workflowName": "build",
    "workflowSourceRef": "/project/build_workflow.py",
    "workflowSource": {
        "type": "file",
        "ref": "/project/build_workflow.py",
        "revision": "a" * 64,
    },
    "sourceFiles": [{"mount": "", "path": "/project/build_workflow.py", "sha256": "f" * 64}],
    "definitionDigest": "sha256:" + "d" * 64,
    "definitionSnapshot": {"name": "build"},
    "input": None,
    "title": "Build it",
    "launchOptions": {"environment": {"PATH": "/usr/bin", "TZ": "UTC"}},
    "originSessionId": "local-build-1",
    "executionMode": "headless",
}

_PAYLOADS: Final[dict[Operation, dict[str, Json]]] = {
    Operation.RUN_START: _START,
    Operation.RUN_PAUSE: {},
    Operation.RUN_RESUME: {},
    Operation.RUN_CANCEL: {},
    Operation.RUN_RESTART: {},
    Operation.RUN_STATUS: {},
    Operation.RUN_LIST: {"limit": 50},
    Operation.CHECKPOINT_ANSWER: {"requestId": "r", "submissionId": "s", "input": {"ok": True}},
    Operation.RUN_CHANGE_SETTINGS: {
        "patch": [{"op": "replace", "path": "/merge", "value": True}],
        "scopeId": "run-1:$root:1",
        "expectedChangeNumber": 2,
    },
    Operation.FOLLOW_UP_QUEUE: {"prompt": "Then tidy up."},
    Operation.FOLLOW_UP_REMOVE: {"followUpId": "follow-up-1"},
    Operation.WORKFLOW_TURN_REPORT: {
        "state": "ended",
        "workflowMessageId": "message-1",
        "workflowTurnId": "turn-1",
        "runId": "run-1",
        "stopReason": "completed",
        "responseSessionEntryId": "entry-1",
    },
    Operation.SESSION_VIEW_CLEAR_TERMINAL: {},
    Operation.INTERACTION_SUBMIT: {
        "requestId": "request-1",
        "submissionId": "submission-1",
        "value": {"route": "clean"},
    },
    Operation.INTERACTION_ASSISTANT: {
        "requestId": "request-1",
        "submissionId": "submission-1",
        "value": {"text": "It is fine.", "sessionEntryId": "entry-1"},
    },
    Operation.INTERACTION_UPDATE: {
        "requestId": "request-1",
        "value": {"update": {"type": "note", "key": "k", "data": {"n": 1}}},
    },
    Operation.DECISION_ANSWER: {
        "requestId": "r",
        "submissionId": "s",
        "response": {"choice": "replan", "input": {"how": "smaller"}},
    },
    Operation.OPERATOR_PROVE: {"passphrase": "a long one"},
    Operation.VIEW_RUNS_WATCH: {"subscriptionId": "s", "limit": 50},
    Operation.VIEW_RUNS_PAGE: {
        "cursor": 50,
        "revision": "7",
        "limit": 50,
        "filter": {"runIdPrefix": "bu", "status": "paused", "projectPath": "/project"},
    },
    Operation.VIEW_RUN_GET: {},
    Operation.VIEW_RUN_WATCH: {"subscriptionId": "s", "revision": 3},
    Operation.VIEW_RUN_UNWATCH: {"subscriptionId": "s"},
    Operation.VIEW_SESSION_WATCH: {
        "subscriptionId": "s",
        "sessionId": "session-1",
        "coordinator": True,
        "nodeCursor": 3,
    },
    Operation.VIEW_SESSION_WINDOW: {"subscriptionId": "s", "nodeCursor": None},
    Operation.VIEW_PAGE: {"kind": "trace", "cursor": 0, "expectedRevision": 3},
    Operation.VIEW_CONTENT: {"path": "artifacts/sha256/00.json", "offset": 0},
    Operation.VIEW_SEARCH: {"query": "no space", "kinds": ["errors"], "cursor": "1.4.0.0a1b2c3d"},
    Operation.WORKFLOW_MESSAGE_REPORT_BRANCH: {
        "workflowMessageId": "message-1",
        "piSessionEntryId": None,
        "isIdle": True,
        "hasPendingMessages": False,
    },
    Operation.SESSION_RECORD: {
        "action": "events",
        "attemptId": "attempt-1",
        "events": [
            {
                "seq": 1,
                "at": 1700000000000,
                "nodeId": "plan",
                "attemptId": "attempt-1",
                "turnId": "turn-1",
                "messageId": "message-1",
                "toolCallId": "call-1",
                "type": "turn_started",
                "payload": {"turnIndex": 0},
            }
        ],
    },
    Operation.WORKFLOW_LIST: {"projectPath": "/project"},
    Operation.WORKFLOW_RESOLVE: {"projectPath": "/project", "target": "build", "input": {}},
    Operation.WORKFLOW_CHECK: {"projectPath": "/project", "target": "build"},
    Operation.EFFECT_LIST: {"runId": "build-1", "status": "ambiguous", "cursor": 0},
    Operation.EFFECT_RESOLVE: {
        "effectId": "effect-1",
        "attemptNumber": 1,
        "action": "confirm",
        "evidence": "the tag is there",
    },
    Operation.STATE_STATUS: {},
    Operation.STATE_VERIFY: {},
    Operation.STATE_BACKUP: {"destination": "/backup/state.sqlite"},
    Operation.SERVER_STATUS: {"calibrate": True},
    Operation.SERVER_STOP: {"graceMs": 0},
}

_WRONG: Final[tuple[Json, ...]] = (None, "", "x" * 5_000, [], {}, [None], {"x": 1}, -1, 1.5, 2**60)


def _members(operation: Operation) -> dict[str, object]:
    """Return the envelope members that an operation takes."""
    spec = OPERATIONS[operation]
    return {
        "run_id": None if spec.run_id is Need.NONE else "build-1",
        "expected_revision": None if spec.expected_revision is Need.NONE else 7,
    }


def _read(operation: Operation, payload: Json, **change: object) -> object:
    """Read a payload beside the envelope members that it needs."""
    members = {**_members(operation), **change}
    run_id, revision = members["run_id"], members["expected_revision"]
    assert run_id is None or isinstance(run_id, str)
    assert revision is None or isinstance(revision, int)
    return read_payload(operation, payload, run_id=run_id, expected_revision=revision)


def _refused(operation: Operation, payload: Json, **change: object) -> PayloadInvalid:
    """Return the refusal of a payload."""
    with pytest.raises(PayloadInvalid) as refused:
        _read(operation, payload, **change)
    return refused.value


def test_the_table_is_a_contract(snapshot: SnapshotAssertion) -> None:
    """Every operation stands in the table, and a change of what one needs is seen."""
    assert set(OPERATIONS) == set(Operation)
    rows = [
        f"{operation.value:20} {spec.kind.value} {spec.payload.__name__:16} "
        f"run={spec.run_id.value} revision={spec.expected_revision.value}"
        f"{' new-run' if spec.names_new_run else ''}"
        f"{' session' if spec.is_session else ''}"
        f"{' any-version' if spec.any_version else ''}"
        for operation, spec in OPERATIONS.items()
    ]
    assert "\n".join(rows) == snapshot


def test_the_models_know_which_operations_are_sessions() -> None:
    """An operation for sessions has a payload in which a session can name itself, no other has."""
    for spec in OPERATIONS.values():
        assert spec.is_session == issubclass(spec.payload, SessionPayload)


def test_reads_expect_no_revision() -> None:
    """A read changes nothing, so no envelope guards it by a revision."""
    for spec in OPERATIONS.values():
        if spec.kind is OperationClass.READ:
            assert spec.expected_revision is Need.NONE


def _changed(value: Json, wrong: Json) -> Iterator[Json]:
    """Yield a value with something else in the place of each of its parts, and of itself."""
    yield wrong
    if isinstance(value, dict):
        for name, member in value.items():
            yield from ({**value, name: other} for other in _changed(member, wrong))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from ([*value[:at], other, *value[at + 1 :]] for other in _changed(item, wrong))


@pytest.mark.parametrize("operation", list(Operation))
def test_a_refusal_says_what_a_member_must_be(operation: Operation) -> None:
    """Whatever stands in the place of any part of a payload, the words are ours."""
    for wrong in _WRONG:
        for payload in _changed(_PAYLOADS[operation], wrong):
            try:
                _read(operation, payload)
            except PayloadInvalid as refused:
                reason = refused.message.partition(": ")[2]
                assert re.match("(must |is required$|unknown field$|kinds must )", reason), reason
                assert not re.search("should|dictionary|[Tt]uple", reason), reason


@pytest.mark.parametrize("operation", list(Operation))
def test_a_good_payload_is_read_and_written_alike(operation: Operation) -> None:
    """Every member of every payload is known, and nothing is lost between JSON and the model."""
    payload = _read(operation, _PAYLOADS[operation])
    assert isinstance(payload, OPERATIONS[operation].payload)
    assert payload.document() == _PAYLOADS[operation]


@pytest.mark.parametrize("operation", list(Operation))
def test_an_unknown_member_is_refused(operation: Operation) -> None:
    """A member that the model does not have is refused by its name."""
    refused = _refused(operation, {**_PAYLOADS[operation], "step": "plan"})
    assert refused.field == "step"
    assert refused.message == "step: unknown field"


@pytest.mark.parametrize("operation", list(Operation))
@pytest.mark.parametrize("payload", [None, [], "text", 0, True])
def test_a_payload_is_an_object(operation: Operation, payload: Json) -> None:
    """Whatever JSON is no object is refused, for every operation."""
    assert _refused(operation, payload).field == "payload"


@pytest.mark.parametrize("operation", list(Operation))
def test_the_envelope_has_what_the_operation_takes(operation: Operation) -> None:
    """`runId` and `expectedRevision` are there when needed and absent when they mean nothing."""
    spec, payload = OPERATIONS[operation], _PAYLOADS[operation]
    if spec.run_id is Need.NONE:
        assert _refused(operation, payload, run_id="build-1").field == "runId"
    elif spec.run_id is Need.REQUIRED:
        assert _refused(operation, payload, run_id=None).field == "runId"
    else:
        _read(operation, payload, run_id="build-1")
    match spec.expected_revision:
        case Need.NONE:
            assert _refused(operation, payload, expected_revision=0).field == "expectedRevision"
        case Need.REQUIRED:
            assert _refused(operation, payload, expected_revision=None).field == "expectedRevision"
        case Need.OPTIONAL:
            _read(operation, payload, expected_revision=None)


@pytest.mark.parametrize("operation", list(Operation))
def test_a_session_may_name_itself_where_sessions_may_ask(operation: Operation) -> None:
    """The session's members are known to its operations only."""
    payload = {**_PAYLOADS[operation], "targetSessionId": "session-1", "coordinatorEpoch": 3}
    if OPERATIONS[operation].is_session:
        read = _read(operation, payload)
        assert isinstance(read, SessionPayload)
        assert read.claims_session
    else:
        assert _refused(operation, payload).field == "targetSessionId"


def test_only_a_new_run_has_its_name_checked() -> None:
    """A run that starts needs a good name; an existing one is found or not."""
    assert _refused(Operation.RUN_START, _START, run_id="no name").reason_code == "runIdInvalid"
    _read(Operation.RUN_PAUSE, {}, run_id="no name")


_BAD: Final[list[tuple[Operation, dict[str, Json], str]]] = [
    (Operation.RUN_START, {"projectPath": "project"}, "projectPath"),
    (Operation.RUN_START, {"workflowName": "x" * 65}, "workflowName"),
    (Operation.RUN_START, {"workflowSource": {"type": "git"}}, "workflowSource.type"),
    (Operation.RUN_START, {"sourceFiles": []}, "sourceFiles"),
    (Operation.RUN_START, {"sourceFiles": [{"mount": ""}]}, "sourceFiles[0].path"),
    (Operation.RUN_START, {"definitionDigest": "d" * 64}, "definitionDigest"),
    (Operation.RUN_START, {"definitionSnapshot": "{}"}, "definitionSnapshot"),
    (Operation.RUN_START, {"title": ""}, "title"),
    (Operation.RUN_START, {"title": None}, "title"),
    (Operation.RUN_START, {"title": "x" * 201}, "title"),
    (Operation.RUN_START, {"executionMode": "detached"}, "executionMode"),
    (Operation.RUN_LIST, {"limit": 0}, "limit"),
    (Operation.RUN_LIST, {"limit": PAGE_ITEMS_MAX + 1}, "limit"),
    (Operation.RUN_LIST, {"limit": "5"}, "limit"),
    (Operation.CHECKPOINT_ANSWER, {"requestId": ""}, "requestId"),
    (Operation.DECISION_ANSWER, {"response": {"choice": 1}}, "response.choice"),
    (Operation.DECISION_ANSWER, {"response": {"choice": "a", "by": "b"}}, "response.by"),
    (Operation.OPERATOR_PROVE, {"passphrase": ""}, "passphrase"),
    (Operation.OPERATOR_PROVE, {"passphrase": "x" * 1_025}, "passphrase"),
    (Operation.VIEW_RUNS_PAGE, {"filter": {"status": "unknown"}}, "filter.status"),
    (Operation.VIEW_RUNS_PAGE, {"filter": {"runIdPrefix": ""}}, "filter.runIdPrefix"),
    (Operation.VIEW_RUN_WATCH, {"subscriptionId": "x" * 257}, "subscriptionId"),
    (Operation.VIEW_SESSION_WATCH, {"sessionId": ""}, "sessionId"),
    (Operation.VIEW_SESSION_WATCH, {"coordinator": 1}, "coordinator"),
    (Operation.VIEW_SESSION_WATCH, {"nodeCursor": None}, "nodeCursor"),
    (Operation.VIEW_SESSION_WINDOW, {"nodeCursor": -1}, "nodeCursor"),
    (Operation.WORKFLOW_MESSAGE_REPORT_BRANCH, {"isIdle": None}, "isIdle"),
    (Operation.WORKFLOW_MESSAGE_REPORT_BRANCH, {"workflowMessageId": ""}, "workflowMessageId"),
    (Operation.VIEW_PAGE, {"kind": "secrets"}, "kind"),
    (Operation.VIEW_CONTENT, {"offset": -1}, "offset"),
    (Operation.VIEW_SEARCH, {"query": ""}, "query"),
    (Operation.VIEW_SEARCH, {"query": "x" * (SEARCH_QUERY_CHARS_MAX + 1)}, "query"),
    (Operation.VIEW_SEARCH, {"kinds": ["prompts"]}, "kinds[0]"),
    (Operation.VIEW_SEARCH, {"kinds": []}, "payload"),
    (Operation.VIEW_SEARCH, {"kinds": ["nodes", "nodes"]}, "payload"),
    (Operation.EFFECT_LIST, {"status": "unsettled"}, "status"),
    (Operation.EFFECT_RESOLVE, {"action": "ignore"}, "action"),
    (Operation.EFFECT_RESOLVE, {"attemptNumber": 0}, "attemptNumber"),
    (Operation.EFFECT_RESOLVE, {"evidence": ""}, "evidence"),
    (Operation.EFFECT_RESOLVE, {"evidence": "x" * (EVIDENCE_CHARS_MAX + 1)}, "evidence"),
    (Operation.SESSION_RECORD, {"action": "erase"}, "action"),
    (Operation.SESSION_RECORD, {"action": "status"}, "payload"),
    (Operation.SESSION_RECORD, {"action": "entries"}, "payload"),
    (Operation.SESSION_RECORD, {"entries": [{"seq": 1, "entry": {}}]}, "payload"),
    (Operation.SESSION_RECORD, {"events": []}, "events"),
    (Operation.SESSION_RECORD, {"events": [{"seq": 0}]}, "events[0].seq"),
    (Operation.SESSION_RECORD, {"attemptId": ""}, "attemptId"),
    (Operation.STATE_BACKUP, {"destination": "state.sqlite"}, "destination"),
    (Operation.SERVER_STATUS, {"calibrate": 1}, "calibrate"),
    (Operation.SERVER_STOP, {"graceMs": -1}, "graceMs"),
]


@pytest.mark.parametrize(("operation", "change", "field"), _BAD)
def test_a_bad_member_is_named(operation: Operation, change: dict[str, Json], field: str) -> None:
    """A value that does not fit is refused by the path of its member."""
    refused = _refused(operation, {**_PAYLOADS[operation], **change})
    assert refused.field == field
    assert refused.message.startswith(f"{field}: ")


def test_nothing_else_of_a_client_environment_is_taken() -> None:
    """A launch names five variables; any other is refused."""
    options: Json = {"environment": {"PATH": "/bin", "HOME": "/root"}}
    refused = _refused(Operation.RUN_START, {**_START, "launchOptions": options})
    assert (refused.field or "").startswith("launchOptions.environment.HOME")


@pytest.mark.parametrize("half", ["cursor", "revision"])
def test_a_page_continues_one_revision(half: str) -> None:
    """A cursor without its revision, and the other way round, means nothing."""
    payload: dict[str, Json] = {"cursor": 1, "revision": "7"}
    del payload[half]
    _refused(Operation.VIEW_RUNS_PAGE, payload)
