"""Two clients ask at the same moment: one of them wins, as the state contract says (section 4)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
import trio
import trio.testing

from pi_workflows.base import ids
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import OPERATOR_ATTEMPT_MS
from pi_workflows.base.units import MS_PER_SECOND
from pi_workflows.domain.attempt.question import WaitForInput
from pi_workflows.protocol.envelope import Request
from tests.kernel.deciding import gated, question
from tests.kernel.harness import (
    SESSION,
    ask,
    ask_text,
    begin,
    definition,
    end,
    end_message,
    finish,
    request_of,
    step_message,
)
from tests.kernel.racing import Ending
from tests.kernel.workflows import speaker
from tests.server.arena import PASSPHRASE, Arena, Ask, Contest, hold
from tests.server.bench import Peer
from tests.server.coordinating import claim

GATE: Final = definition({"gate": {"type": "checkpoint", "timeoutMs": 0}})
SPEECH: Final = definition({"say": speaker(80)})


async def _gated(arena: Arena) -> None:
    await arena.started(GATE)
    gate = begin("gate", run_id=arena.run_id, node_type="checkpoint")
    await arena.do(gate, ask("gate", run_id=arena.run_id))


def _message(arena: Arena) -> str:
    return step_message("say", run_id=arena.run_id)


async def _told(arena: Arena) -> None:
    await arena.started(SPEECH, has_session=True)
    first = begin("say", run_id=arena.run_id, node_type="agent")
    await arena.do(first, ask_text("say", run_id=arena.run_id))


async def _sent(arena: Arena) -> None:
    await _told(arena)
    await arena.session("workflowMessage.reportBranch", _report(arena))


async def _working(arena: Arena) -> None:
    await _sent(arena)
    await arena.session("workflowTurn.report", _turn(arena, None))


async def _ended(arena: Arena) -> None:
    await arena.started(GATE)
    await arena.peers[1].ask("run.cancel", run_id=arena.run_id)


async def _decided(arena: Arena) -> None:
    for peer in arena.peers[1:]:
        await trio.sleep(OPERATOR_ATTEMPT_MS / MS_PER_SECOND)
        proved = await peer.ask("operator.prove", {"passphrase": PASSPHRASE})
        assert proved.error is None, proved
    await arena.started(gated())
    gate = begin("gate", run_id=arena.run_id, node_type="checkpoint")
    attempt = ids.attempt_id(arena.run_id, "gate", 1)
    await arena.do(gate, WaitForInput(arena.run_id, attempt, "decision", question()))


async def _free(_: Arena) -> None:
    await trio.lowlevel.checkpoint()


def _report(arena: Arena) -> dict[str, Json]:
    return {
        "workflowMessageId": _message(arena),
        "piSessionEntryId": f"entry-{arena.run_id}",
        "isIdle": False,
        "hasPendingMessages": False,
    }


def _turn(arena: Arena, reason: str | None, name: str = "t") -> dict[str, Json]:
    payload: dict[str, Json] = {
        "state": "started" if reason is None else "ended",
        "workflowMessageId": _message(arena),
        "workflowTurnId": f"{name}-{arena.run_id}",
        "runId": arena.run_id,
    }
    if reason is not None:
        payload |= {"stopReason": reason, "responseSessionEntryId": None}
    return payload


def answers(peer: int, value: str) -> Ask:
    """Return a client's answer to the checkpoint."""

    def asked(arena: Arena) -> tuple[Peer, Request]:
        request = request_of("gate", run_id=arena.run_id)
        payload: dict[str, Json] = {
            "requestId": request,
            "submissionId": f"{value}-{arena.run_id}",
            "input": value,
        }
        return arena.named(peer, "checkpoint.answer", payload, 1)

    return asked


def says(text: str) -> Ask:
    """Return what the session's model said."""

    def asked(arena: Arena) -> tuple[Peer, Request]:
        payload: dict[str, Json] = {
            "requestId": request_of("say", run_id=arena.run_id),
            "submissionId": f"{text}-{arena.run_id}",
            "value": {"text": text, "sessionEntryId": f"said-{text}"},
        }
        return arena.named(0, "interaction.assistant", payload, 1)

    return asked


def control(operation: str, peer: int = 1) -> Ask:
    """Return a client's command about the run."""
    return lambda arena: arena.named(peer, operation)


def turns(reason: str | None, name: str = "t") -> Ask:
    """Return the session's report of a turn."""
    return lambda arena: arena.named(0, "workflowTurn.report", _turn(arena, reason, name))


def evidence(arena: Arena) -> tuple[Peer, Request]:
    """Return the session's report that its branch holds the message."""
    return arena.named(0, "workflowMessage.reportBranch", _report(arena))


def starts(peer: int) -> Ask:
    """Return a client's start of a run that reserves the session."""

    def asked(arena: Arena) -> tuple[Peer, Request]:
        run_id = arena.run_id if peer == 1 else f"{arena.run_id}-b"
        payload = arena.bench.start(run_id, originSessionId=SESSION, executionMode="interactive")
        return arena.peers[peer], arena.peers[peer].request("run.start", payload, run_id=run_id)

    return asked


def restarts(peer: int) -> Ask:
    """Return a client's restart of the run at the revision that it has now."""
    return lambda arena: arena.named(peer, "run.restart", revision=arena.revision())


def decides(peer: int, choice: str) -> Ask:
    """Return a person's decision."""

    def asked(arena: Arena) -> tuple[Peer, Request]:
        payload: dict[str, Json] = {
            "requestId": request_of("gate", run_id=arena.run_id),
            "submissionId": f"{choice}-{arena.run_id}",
            "response": {"choice": choice},
        }
        return arena.named(peer, "decision.answer", payload, 1)

    return asked


async def _handed_over(arena: Arena) -> None:
    await arena.started(SPEECH, has_session=True)
    run_id = arena.run_id
    await arena.do(begin("say", run_id=run_id, node_type="agent"))
    await arena.do(end("say", run_id=run_id, outcome="failed"))
    await arena.do(finish(run_id=run_id, outcome="failed"))
    await trio.testing.wait_all_tasks_blocked()
    message = end_message(run_id)
    report = {**_report(arena), "workflowMessageId": message}
    await arena.session("workflowMessage.reportBranch", report)
    turn = {**_turn(arena, None), "workflowMessageId": message}
    assert (await arena.session("workflowTurn.report", turn)).error is None


async def _followed(arena: Arena) -> None:
    await arena.started(SPEECH, has_session=True)
    peer, request = arena.named(1, "followUp.queue", {"prompt": "Go on."})
    await peer.send(request)
    assert (await peer.response(request)).error is None


def _follow_up(arena: Arena) -> str:
    return str(next(row[0] for row in arena.dump("workflow_follow_ups")))


def removes(arena: Arena) -> tuple[Peer, Request]:
    """Return the request that takes the run's only follow-up back."""
    return arena.named(1, "followUp.remove", {"followUpId": _follow_up(arena)})


def launches(name: str) -> Ask:
    """Return a run that the session starts from the end of its run."""

    def asked(arena: Arena) -> tuple[Peer, Request]:
        run_id = f"{arena.run_id}-{name}"
        payload = {
            **arena.bench.start(run_id, originSessionId=SESSION, executionMode="interactive"),
            "recoverySourceMessageId": end_message(arena.run_id),
        }
        return arena.peers[0], arena.peers[0].request("run.start", payload, run_id=run_id)

    return asked


def restarts_itself(arena: Arena) -> tuple[Peer, Request]:
    """Return the restart that the session asks for from the end of its run."""
    payload = {**claim(arena.epoch), "recoverySourceMessageId": end_message(arena.run_id)}
    return arena.named(0, "run.restart", payload, arena.revision())


CONTESTS: Final[dict[str, Contest]] = {
    "two answers": Contest(
        _gated,
        answers(1, "yes"),
        answers(2, "no"),
        Ending("accepted", "alreadyAnswered", {"requests": ["settled"], "queue": "queued"}),
        Ending("accepted", "alreadyAnswered", {"requests": ["settled"], "queue": "queued"}),
    ),
    "answer and cancel": Contest(
        _gated,
        answers(1, "yes"),
        control("run.cancel"),
        Ending("accepted", "accepted", {"requests": ["settled"], "run": "cancelled"}),
        Ending("accepted", "requestCancelled", {"requests": ["cancelled"], "run": "cancelled"}),
    ),
    "answer and pause": Contest(
        _gated,
        answers(1, "yes"),
        control("run.pause"),
        Ending("accepted", "accepted", {"requests": ["settled"], "paused": True}),
        Ending("accepted", "runPaused", {"requests": ["pending"], "paused": True}),
    ),
    "pause and cancel": Contest(
        _gated,
        control("run.pause", 2),
        control("run.cancel"),
        Ending("accepted", "accepted", {"run": "cancelled", "paused": False}),
        Ending("accepted", "runTerminal", {"run": "cancelled", "paused": False}),
    ),
    "two cancels": Contest(
        _gated,
        control("run.cancel", 2),
        control("run.cancel"),
        Ending("accepted", "adopted", {"run": "cancelled", "queue": "cancelled"}),
        Ending("accepted", "adopted", {"run": "cancelled", "queue": "cancelled"}),
    ),
    "two texts": Contest(
        _working,
        says("a"),
        says("b"),
        Ending("accepted", "alreadyAnswered", {"requests": ["settled"], "queue": "queued"}),
        Ending("accepted", "alreadyAnswered", {"requests": ["settled"], "queue": "queued"}),
    ),
    "text and pause": Contest(
        _working,
        says("a"),
        control("run.pause"),
        Ending("accepted", "accepted", {"requests": ["settled"], "paused": True}),
        Ending("accepted", "runPaused", {"requests": ["pending"], "paused": True}),
    ),
    "text and cancel": Contest(
        _working,
        says("a"),
        control("run.cancel"),
        Ending("accepted", "accepted", {"requests": ["settled"], "run": "cancelled"}),
        Ending("accepted", "requestCancelled", {"requests": ["cancelled"], "run": "cancelled"}),
    ),
    "two turns of a message": Contest(
        _sent,
        turns(None, "a"),
        turns(None, "b"),
        Ending("accepted", "turnOpen", {}),
        Ending("accepted", "turnOpen", {}),
    ),
    "turn start and cancel": Contest(
        _sent,
        turns(None),
        control("run.cancel"),
        Ending("accepted", "accepted", {"run": "cancelled"}),
        Ending("accepted", "adopted", {"run": "cancelled", "turns": {}}),
    ),
    "turn end and cancel": Contest(
        _working,
        turns("completed"),
        control("run.cancel"),
        Ending("accepted", "accepted", {"run": "cancelled"}),
        Ending("accepted", "adopted", {"run": "cancelled"}),
    ),
    "aborted turn and text": Contest(
        _working,
        turns("aborted"),
        says("a"),
        Ending("accepted", "runPaused", {"requests": ["pending"], "paused": True}),
        Ending("accepted", "accepted", {"requests": ["settled"], "paused": False}),
    ),
    "branch evidence and cancel": Contest(
        _told,
        evidence,
        control("run.cancel"),
        Ending("accepted", "accepted", {"run": "cancelled"}),
        Ending("accepted", "accepted", {"run": "cancelled"}),
    ),
    "two restarts": Contest(
        _ended,
        restarts(1),
        restarts(2),
        Ending("accepted", "adopted", {"run": "cancelled"}),
        Ending("accepted", "adopted", {"run": "cancelled"}),
    ),
    "a decision by two people": Contest(
        _decided,
        decides(1, "go"),
        decides(2, "stop"),
        Ending("accepted", "alreadyDecided", {"requests": ["settled"], "queue": "queued"}),
        Ending("accepted", "alreadyDecided", {"requests": ["settled"], "queue": "queued"}),
    ),
    "decision and cancel": Contest(
        _decided,
        decides(1, "go"),
        control("run.cancel"),
        Ending("accepted", "accepted", {"requests": ["settled"], "run": "cancelled"}),
        Ending("accepted", "alreadyDecided", {"requests": ["cancelled"], "run": "cancelled"}),
    ),
    "two launches from an end": Contest(
        _handed_over,
        launches("a"),
        launches("b"),
        Ending("accepted", "adopted", {}),
        Ending("accepted", "adopted", {}),
    ),
    "launch and restart from an end": Contest(
        _handed_over,
        launches("a"),
        restarts_itself,
        Ending("accepted", "adopted", {}),
        Ending("accepted", "adopted", {}),
    ),
    "launch from an end and its stop": Contest(
        _handed_over,
        launches("a"),
        control("run.cancel"),
        Ending("accepted", "accepted", {"stops": ["cancelled"]}),
        Ending("accepted", "recoveryStopped", {"stops": ["cancelled"]}),
    ),
    "a follow-up removed and its run cancelled": Contest(
        _followed,
        removes,
        control("run.cancel"),
        Ending("accepted", "accepted", {"run": "cancelled"}),
        Ending("accepted", "followUpCancelled", {"run": "cancelled"}),
    ),
    "two runs of a session": Contest(
        _free,
        starts(1),
        starts(2),
        Ending("accepted", "sessionBusy", {}),
        Ending("accepted", "sessionBusy", {}),
    ),
}


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that costs nothing; the command's own test pays for a real one."""
    monkeypatch.setattr("pi_workflows.server.operator_key.SCRYPT_COST", 16)


@pytest.mark.parametrize("name", CONTESTS)
def test_one_of_two_clients_wins(state_dir: Path, name: str) -> None:
    """Round after round, each is told what it is told when one of them was first."""
    hold(state_dir, CONTESTS[name])
