"""Two clients ask at the same moment: one of them wins, as the state contract says (section 4)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import pytest
import trio

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import OPERATOR_ATTEMPT_MS
from pi_workflows.base.sql import Statement, plain
from pi_workflows.base.units import MS_PER_SECOND
from pi_workflows.domain.attempt.question import WaitForInput
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.domain.run.claim import ClaimRun, MarkReady
from pi_workflows.kernel.order import Claimant, Order
from pi_workflows.protocol.envelope import Request, Response
from pi_workflows.server.operator_key import create_key
from tests.kernel.deciding import gated, question
from tests.kernel.harness import (
    SESSION,
    ask,
    ask_text,
    begin,
    definition,
    request_of,
    step_message,
)
from tests.kernel.racing import Ending, standing
from tests.kernel.workflows import speaker
from tests.server.bench import Bench, Peer, run, server
from tests.server.coordinating import claim, coordinate

ROUNDS: Final = 6
HEAD_START: Final = 20
PASSPHRASE: Final = "correct horse"  # noqa: S105 - of nobody
GATE: Final = definition({"gate": {"type": "checkpoint", "timeoutMs": 0}})
SPEECH: Final = definition({"say": speaker(80)})


@dataclass
class Arena:
    """A server with a session's client and two others.

    Attributes:
        bench: The server.
        peers: Its clients; the first one coordinates the session.
        epoch: Its claim on the session.
        run_id: The run that is raced for.
    """

    bench: Bench
    peers: tuple[Peer, Peer, Peer]
    epoch: int
    run_id: str = "run-0"

    def dump(self, table: str) -> list[tuple[object, ...]]:
        """Return the rows of a table; of those that belong to a run, this run's."""
        every = Statement(table, f"SELECT * FROM {table} ORDER BY 1, 2")  # noqa: S608 - a test's own
        own = Statement(
            table,
            f"SELECT * FROM {table} WHERE run_id = '{self.run_id}' ORDER BY 1, 2",  # noqa: S608
        )
        is_own = table in {"workflow_messages", "workflow_turns", "interactive_requests"}
        with self.bench.parts.services.store.snapshot() as read:
            return list(read.each(plain, own if is_own else every))

    async def do(self, *commands: Command) -> None:
        """Let a runner do something; its process is no part of these tests."""
        services = self.bench.parts.services
        order = Order(
            name="runner",
            commands=commands,
            actor=Actor("host", services.host_id),
            command_id=ids.random_id("command"),
            claimant=Claimant(services.host_id, b"t" * 32, services.clock.now_ms() + 60_000),
            run_id=self.run_id,
        )
        answer = await services.writer.submit(order)
        assert answer.error is None, answer

    def revision(self) -> int:
        """Return the revision that the run has now."""
        rows = self.dump("resources")
        return next(int(str(row[3])) for row in rows if row[2] == self.run_id)

    async def started(self, workflow: Blob, *, has_session: bool = False) -> None:
        """Start the run and let a runner be ready."""
        changes: dict[str, Json] = {
            "definitionSnapshot": canonical.decode(workflow.content),
            "definitionDigest": f"sha256:{workflow.hex}",
        }
        if has_session:
            changes |= {"originSessionId": SESSION, "executionMode": "interactive"}
        payload = self.bench.start(self.run_id, **changes)
        reply = await self.peers[1].ask("run.start", payload, run_id=self.run_id)
        assert reply.error is None, reply
        await self.do(ClaimRun(self.run_id))
        await self.do(MarkReady(self.run_id))

    async def session(self, operation: str, payload: dict[str, Json]) -> Response:
        """Ask for something in the session's name."""
        return await self.peers[0].ask(operation, {**payload, **claim(self.epoch, SESSION)})

    def named(
        self,
        peer: int,
        operation: str,
        payload: dict[str, Json] | None = None,
        revision: int | None = None,
    ) -> tuple[Peer, Request]:
        """Return a request of a client; in the session's name when it is the session's."""
        is_sessions = operation.startswith(("interaction.", "workflow"))
        members: dict[str, Json] = dict(payload or {})
        if is_sessions:
            members |= claim(self.epoch, SESSION)
        request = self.peers[peer].request(
            operation,
            members,
            run_id=None if operation.startswith("workflow") else self.run_id,
            expected_revision=revision,
        )
        return self.peers[peer], request


Scene: TypeAlias = Callable[[Arena], Awaitable[None]]
Ask: TypeAlias = Callable[[Arena], tuple[Peer, Request]]


class Contest(NamedTuple):
    """Two requests, and what comes of them whichever is first."""

    scene: Scene
    one: Ask
    other: Ask
    forth: Ending
    back: Ending


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
    "two runs of a session": Contest(
        _free,
        starts(1),
        starts(2),
        Ending("accepted", "sessionBusy", {}),
        Ending("accepted", "sessionBusy", {}),
    ),
}


def told(response: Response) -> str:
    """Return the code of a refusal, else the outcome."""
    receipt = response.receipt
    code = receipt.get("code") if isinstance(receipt, dict) else None
    return code if isinstance(code, str) else str(response.outcome.value)


async def meet(arena: Arena, contest: Contest, number: int) -> tuple[str, str]:
    """Send both requests before either is answered; return what each client is told.

    The second is some steps of the server behind the first, in each round some more.
    """
    asked = [contest.one(arena), contest.other(arena)]
    for peer, request in reversed(asked) if number % 2 else asked:
        await peer.send(request)
        for _ in range(number // 2 * HEAD_START):
            await trio.lowlevel.checkpoint()
    replies = [await peer.response(request) for peer, request in asked]
    return told(replies[0]), told(replies[1])


def outcomes(contest: Contest) -> dict[tuple[str, str], list[Ending]]:
    """Return what may be told, whoever was first, with what is left then."""
    found: dict[tuple[str, str], list[Ending]] = {}
    forth, back = contest.forth, contest.back
    found.setdefault((forth.winner, forth.loser), []).append(forth)
    found.setdefault((back.loser, back.winner), []).append(back)
    return found


def holds(arena: Arena, ending: Ending) -> bool:
    """Whether the run is left as an ending says."""
    left = standing(arena, arena.run_id) if ending.standing else {}
    return {each: left[each] for each in ending.standing} == ending.standing


async def cleared(arena: Arena) -> None:
    """End what reserves the session, and let its end be told to nobody."""
    for run_id in (arena.run_id, f"{arena.run_id}-b"):
        await arena.peers[1].ask("run.cancel", run_id=run_id)


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that costs nothing; the command's own test pays for a real one."""
    monkeypatch.setattr("pi_workflows.server.operator_key.SCRYPT_COST", 16)


@pytest.mark.parametrize("name", CONTESTS)
def test_one_of_two_clients_wins(state_dir: Path, name: str) -> None:
    """Round after round, each is told what it is told when one of them was first."""
    contest = CONTESTS[name]

    async def body() -> None:
        async with server(state_dir) as bench:
            create_key(bench.state.operator, PASSPHRASE)
            session, one, other = [await bench.connect(each) for each in ("s", "one", "other")]
            arena = Arena(bench, (session, one, other), await coordinate(session, SESSION))
            for number in range(ROUNDS):
                arena.run_id = f"run-{number}"
                await contest.scene(arena)
                met = await meet(arena, contest, number)
                endings = outcomes(contest).get(met, [])
                assert any(holds(arena, ending) for ending in endings), (met, dict(_left(arena)))
                await cleared(arena)

    run(body)


def _left(arena: Arena) -> dict[str, object]:
    return standing(arena, arena.run_id) if arena.dump("runs") else {}
