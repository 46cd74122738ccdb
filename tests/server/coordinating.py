"""A Pi session's client over the socket: it coordinates, watches, starts the session's runs."""

from __future__ import annotations

import trio

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.protocol.envelope import Event, EventKind, Response
from pi_workflows.protocol.operations import Operation
from tests.server.bench import Bench, Peer

REPORT: dict[str, Json] = {
    "workflowMessageId": None,
    "piSessionEntryId": None,
    "isIdle": True,
    "hasPendingMessages": False,
}
# What each operation of sessions needs beside the claim.
PAYLOADS: dict[Operation, dict[str, Json]] = {
    Operation.RUN_RESTART: {},
    Operation.RUN_CHANGE_SETTINGS: {"patch": [{"op": "remove", "path": "/a"}]},
    Operation.FOLLOW_UP_QUEUE: {"prompt": "Now tell."},
    Operation.FOLLOW_UP_REMOVE: {"followUpId": "f"},
    Operation.CHECKPOINT_ANSWER: {"requestId": "r", "submissionId": "s"},
    Operation.DECISION_ANSWER: {
        "requestId": "r",
        "submissionId": "s",
        "response": {"choice": "go"},
    },
    Operation.WORKFLOW_MESSAGE_REPORT_BRANCH: REPORT,
    Operation.WORKFLOW_TURN_REPORT: {
        "state": "started",
        "workflowMessageId": "m",
        "workflowTurnId": "t",
        "runId": "run-1",
    },
    Operation.SESSION_VIEW_CLEAR_TERMINAL: {},
    Operation.INTERACTION_SUBMIT: {"requestId": "r", "submissionId": "s", "value": 1},
    Operation.INTERACTION_ASSISTANT: {
        "requestId": "r",
        "submissionId": "s",
        "value": {"text": "done", "sessionEntryId": "e"},
    },
    Operation.INTERACTION_UPDATE: {
        "requestId": "r",
        "value": {"update": {"type": "note", "key": "k", "data": {}}},
    },
    Operation.SESSION_RECORD: {
        "action": "capture",
        "capture": {
            "schema": "pi-workflows.session-capture.v1",
            "eventSchema": "pi-workflows.session-event.v1",
            "status": "complete",
            "eventCount": 0,
            "entryCount": 0,
            "lastEventSeq": 0,
        },
    },
}


def members(value: Json) -> dict[str, Json]:
    """Return a JSON object's members."""
    assert isinstance(value, dict), value
    return value


def code(response: Response) -> Json:
    """Return the code of a refusal."""
    return members(response.receipt)["code"]


def claim(epoch: int, session_id: str = "session-1") -> dict[str, Json]:
    """Return what a request in a session's name carries."""
    return {"targetSessionId": session_id, "coordinatorEpoch": epoch}


async def coordinate(
    peer: Peer, session_id: str = "session-1", *, is_reported: bool = True, name: str = "s"
) -> int:
    """Make a connection the coordinator of a session; return its epoch."""
    payload: Json = {"subscriptionId": name, "sessionId": session_id, "coordinator": True}
    reply = await peer.ask("view.session.watch", payload)
    receipt = members(reply.receipt)
    epoch = receipt["coordinatorEpoch"]
    assert isinstance(epoch, int)
    assert receipt == {"subscribed": True, "coordinatorEpoch": epoch}
    if is_reported:
        await report(peer, epoch, session_id)
    return epoch


async def report(peer: Peer, epoch: int, session_id: str = "session-1") -> None:
    """Report a branch that holds nothing."""
    reply = await peer.ask("workflowMessage.reportBranch", {**REPORT, **claim(epoch, session_id)})
    assert (reply.outcome, reply.receipt) == (
        Outcome.ACCEPTED,
        {
            "schema": "pi-workflows.branch-report-receipt.v1",
            "outcome": "absent",
            "workflowMessageId": None,
        },
    )


async def watch(
    peer: Peer, session_id: str = "session-1", name: str = "s", **more: Json
) -> dict[str, Json]:
    """Watch a session and return its view."""
    payload: dict[str, Json] = {"subscriptionId": name, "sessionId": session_id, **more}
    reply = await peer.ask("view.session.watch", payload)
    assert (reply.outcome, reply.receipt) == (Outcome.ACCEPTED, {"subscribed": True})
    return view(await peer.event())


def view(event: Event) -> dict[str, Json]:
    """Return the view that an event brings."""
    assert event.event is EventKind.SESSION_SNAPSHOT, event
    return members(event.payload)


async def until(peer: Peer, name: str, wanted: Json) -> dict[str, Json]:
    """Return the first view whose member is as wanted; what is told before is passed over."""
    while (seen := view(await peer.event()))[name] != wanted:
        pass
    return seen


async def nothing(*peers: Peer) -> None:
    """Hold that nobody is told anything more."""
    for peer in peers:
        with trio.move_on_after(1) as silence:
            event = await peer.event()
            raise AssertionError(event)
        assert silence.cancelled_caught


async def begin(
    bench: Bench, peer: Peer, run_id: str = "run-1", session_id: str = "session-1"
) -> Response:
    """Start a run that reserves a session."""
    payload = bench.start(run_id, originSessionId=session_id, executionMode="interactive")
    return await peer.ask("run.start", payload, run_id=run_id)


def shown(seen: dict[str, Json]) -> Json:
    """Return the run and its status that a view shows; None without a run."""
    if seen["run"] is None:
        return None
    work = members(seen["run"])
    return [work["runId"], members(work["display"])["status"]]
