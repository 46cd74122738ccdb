"""A server with clients that ask at the same moment, and what each is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import trio

from pi_workflows.base import canonical, ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.sql import Statement, plain
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.domain.run.claim import ClaimRun, MarkReady
from pi_workflows.kernel.order import Claimant, Order
from pi_workflows.protocol.envelope import Request, Response
from pi_workflows.server.operator_key import create_key
from tests.kernel.harness import SESSION
from tests.kernel.racing import Ending, standing
from tests.server.bench import Bench, Peer, run, server
from tests.server.coordinating import REPORT, claim, coordinate

ROUNDS: Final = 6
HEAD_START: Final = 20
PASSPHRASE: Final = "correct horse"  # noqa: S105 - of nobody


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
        is_own = table.startswith("workflow_") or table == "interactive_requests"
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
    """End what reserves the session, and the turn that is open in it."""
    for row in arena.dump("run_queue"):
        if row[1] not in {"done", "failed", "cancelled"}:
            reply = await arena.peers[1].ask("run.cancel", run_id=str(row[0]))
            assert reply.error is None, reply
    await arena.session("workflowMessage.reportBranch", REPORT)


def hold(directory: Path, contest: Contest) -> None:
    """Hold that round after round one of two requests is before the other."""

    async def body() -> None:
        async with server(directory) as bench:
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
