"""Turns in the whole server, in trio's own time: whose time runs, when it ends, what is shown."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import trio
import trio.testing

from pi_workflows.base import canonical, ids
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.base.limits import TERMINAL_RETAINED_MS, TERMINAL_TURN_MS
from pi_workflows.base.sql import Statement
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.domain.run.claim import ClaimRun, MarkReady
from pi_workflows.kernel.order import Claimant, Order
from pi_workflows.protocol.envelope import Response
from tests.kernel.harness import (
    ask_agent,
    begin,
    end_message,
    request_of,
    step_message,
)
from tests.kernel.workflows import TALK
from tests.server.bench import Bench, Peer, run, server
from tests.server.coordinating import claim, code, coordinate, members, shown, until, view

BUDGET_MS = 900_000


class Clock(NamedTuple):
    """One active interval."""

    ended_at: int | None
    elapsed_ms: int


@dataclass
class Talk:
    """A session whose run asks its model for a plan."""

    bench: Bench
    peer: Peer
    epoch: int

    async def do(self, *commands: Command) -> None:
        """Let a runner do something; its process is no part of these tests."""
        services = self.bench.parts.services
        token = Claimant(services.host_id, b"t" * 32, services.clock.now_ms() + 60_000)
        order = Order(
            name="runner",
            commands=commands,
            actor=Actor("host", services.host_id),
            command_id=ids.random_id("command"),
            claimant=token,
            run_id="run-1",
        )
        answer = await services.writer.submit(order)
        assert answer.error is None, answer

    async def session(self, operation: str, payload: dict[str, Json], **named: int) -> Response:
        """Ask for something in the session's name."""
        has_run = operation.startswith("interaction")
        return await self.peer.ask(
            operation,
            {**payload, **claim(self.epoch)},
            run_id="run-1" if has_run else None,
            expected_revision=named.get("revision"),
        )

    async def report(self, message: str | None = None, *, is_idle: bool = True) -> Response:
        """Say that the branch holds a message."""
        return await self.session(
            "workflowMessage.reportBranch",
            {
                "workflowMessageId": message,
                "piSessionEntryId": None if message is None else f"entry-{message}",
                "isIdle": is_idle,
                "hasPendingMessages": False,
            },
        )

    async def turn(self, message: str, reason: str | None = None, name: str = "t1") -> Json:
        """Report the beginning of a turn, or its end; return who owns it."""
        payload: dict[str, Json] = {
            "state": "started" if reason is None else "ended",
            "workflowMessageId": message,
            "workflowTurnId": name,
            "runId": "run-1",
        }
        if reason is not None:
            payload |= {"stopReason": reason, "responseSessionEntryId": None}
        reply = await self.session("workflowTurn.report", payload)
        return members(reply.receipt)["ownership"]

    async def leave(self) -> None:
        """Lose the connection."""
        await self.peer.stream.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert self.bench.parts.services.coordinators.of("session-1") is None

    async def return_(self) -> None:
        """Connect again; the session still works."""
        self.peer = await self.bench.connect("again")
        self.epoch = await coordinate(self.peer, is_reported=False)
        await self.report(is_idle=False)

    def clocks(self) -> list[Clock]:
        """Return the active intervals of the step after its runner's own."""
        every = Statement(
            "intervals",
            "SELECT ended_at, elapsed_ms FROM attempt_active_intervals"
            " WHERE interval_number > 1 ORDER BY interval_number",
        )
        with self.bench.parts.services.store.snapshot() as read:
            return read.all(Clock, every)

    async def status(self) -> Json:
        """Return how the run is shown."""
        shown_view = members((await self.peer.ask("view.run.get", run_id="run-1")).receipt)
        return members(shown_view["display"])["status"]


@asynccontextmanager
async def talking(directory: Path) -> AsyncGenerator[Talk]:
    """Run a server with a session whose run has asked for a plan, which its branch holds."""
    async with server(directory) as bench:
        peer = await bench.connect()
        talk = Talk(bench, peer, await coordinate(peer))
        payload = bench.start(
            "run-1",
            originSessionId="session-1",
            executionMode="interactive",
            definitionSnapshot=canonical.decode(TALK.content),
            definitionDigest=f"sha256:{TALK.hex}",
        )
        reply = await peer.ask("run.start", payload, run_id="run-1")
        assert reply.outcome is Outcome.ACCEPTED, reply
        await talk.do(ClaimRun("run-1"))
        await talk.do(MarkReady("run-1"), begin("plan", node_type="agent"), ask_agent("plan"))
        assert (await talk.report(PLAN)).outcome is Outcome.ACCEPTED
        yield talk


PLAN = step_message("plan")


def test_only_a_turn_of_a_session_that_is_there_is_active(state_dir: Path) -> None:
    """Waiting for the turn, a lost connection and a pause are free; the turn itself is not."""

    async def body() -> None:
        async with talking(state_dir) as talk:
            await trio.sleep(3_600)
            assert talk.clocks() == []
            assert await talk.turn(PLAN) == "active"
            await trio.sleep(20)
            await talk.leave()
            await trio.sleep(7_200)
            assert [each.ended_at is not None for each in talk.clocks()] == [True]
            await talk.return_()
            await trio.sleep(10)
            assert (await talk.peer.ask("run.pause", run_id="run-1")).outcome is Outcome.ACCEPTED
            await trio.sleep(7_200)
            await talk.leave()
            await talk.return_()
            await trio.sleep(60)
            assert [each.ended_at is not None for each in talk.clocks()] == [True, True]
            elapsed = [each.elapsed_ms // 1_000 for each in talk.clocks()]
            assert elapsed == [20, 10]

    run(body)


def test_a_step_whose_time_is_over_is_asked_no_more(state_dir: Path) -> None:
    """Active time alone spends the budget: then the request closes, and a runner records that."""

    async def body() -> None:
        async with talking(state_dir) as talk:
            await talk.turn(PLAN)
            await trio.sleep(BUDGET_MS / 1_000 - 100)
            assert await talk.status() == "running"
            await talk.leave()
            await trio.sleep(3_600)
            await talk.return_()
            await trio.sleep(99)
            assert await talk.status() == "running"
            await trio.sleep(2)
            late = await talk.session(
                "interaction.submit",
                {"requestId": request_of("plan"), "submissionId": "late", "value": 1},
                revision=1,
            )
            assert code(late) == "requestExpired"
            assert sum(each.elapsed_ms for each in talk.clocks()) >= BUDGET_MS
            page = await talk.peer.ask("view.page", {"kind": "trace", "cursor": 0}, run_id="run-1")
            items = members(page.receipt)["items"]
            assert isinstance(items, list)
            assert "run.interaction_timeout_started" in [members(item)["type"] for item in items]

    run(body)


def test_a_turn_at_a_runs_end_has_a_budget_and_a_last_minute(state_dir: Path) -> None:
    """After fifteen active minutes nothing is launched by itself; a minute later it is gone."""

    async def body() -> None:
        async with talking(state_dir) as talk:
            watcher = await talk.bench.connect("watcher")
            await talk.turn(PLAN)
            await talk.turn(PLAN, "aborted")
            assert await talk.status() == "paused"
            await watcher.ask("run.cancel", run_id="run-1")
            end = end_message()
            seen = await until(talk.peer, "openWorkflowTurn", wanted=None)
            while members(seen["workflowMessage"] or {}).get("workflowMessageId") != end:
                seen = view(await talk.peer.event())
            assert shown(seen) == ["run-1", "cancelled"]
            await talk.report(end)
            assert await talk.turn(end, name="t2") == "active"
            await trio.sleep(TERMINAL_TURN_MS / 1_000 + 1)
            stop = Statement(
                "stop", "SELECT recovery_stop FROM workflow_messages WHERE kind = 'terminal'"
            )
            with talk.bench.parts.services.store.snapshot() as read:
                assert read.one(str, stop) == "timed_out"
            assert await talk.turn(end, "completed", name="t2") == "settled"
            await trio.sleep(TERMINAL_RETAINED_MS / 1_000 - 5)
            began = trio.current_time()
            while shown(view(await talk.peer.event())) is not None:
                pass
            assert trio.current_time() - began < 10

    run(body)


def test_an_end_that_was_seen_can_be_cleared(state_dir: Path) -> None:
    """A session that wants its ended run out of sight has it out of sight, once."""

    async def body() -> None:
        async with talking(state_dir) as talk:
            await talk.peer.ask("run.cancel", run_id="run-1")
            while shown(seen := view(await talk.peer.event())) != ["run-1", "cancelled"]:
                pass
            while seen["workflowMessage"] is None:
                seen = view(await talk.peer.event())
            cleared = await talk.session("sessionView.clearTerminal", {})
            assert cleared.receipt == {"cleared": True, "runId": "run-1"}
            while shown(seen := view(await talk.peer.event())) is not None:
                pass
            again = await talk.session("sessionView.clearTerminal", {})
            assert again.receipt == {"cleared": False}

    run(body)


def test_what_a_session_publishes_is_bounded_and_checked(state_dir: Path) -> None:
    """Progress of a step is recorded while it is open; a burst over the limit is refused."""

    async def body() -> None:
        async with talking(state_dir) as talk:
            await talk.turn(PLAN)

            async def update(kind: str, data: dict[str, Json]) -> Response:
                account: Json = {"type": kind, "key": "k", "data": data}
                payload: dict[str, Json] = {
                    "requestId": request_of("plan"),
                    "value": {"update": account},
                }
                return await talk.session("interaction.update", payload, revision=1)

            first = members((await update("progress", {"status": "running"})).receipt)
            assert (first["nodeId"], first["type"], first["key"]) == ("plan", "progress", "k")
            assert code(await update("progress", {"status": "tired"})) == "progressInvalid"
            replies = [await update("note", {"n": number}) for number in range(200)]
            codes = [code(reply) for reply in replies if reply.outcome is Outcome.REJECTED]
            assert codes
            assert set(map(str, codes)) == {"updateRate"}

    run(body)
