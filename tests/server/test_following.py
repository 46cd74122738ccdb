"""A run of a real server, followed by clients of every kind from its beginning to its end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import trio

from pi_workflows.base.canonical import Json
from pi_workflows.base.version import package_version
from pi_workflows.client import asyncio_client, trio_client
from pi_workflows.client.async_client import AsyncClient
from pi_workflows.client.blocking import Client
from pi_workflows.client.endpoint import Endpoint
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.mirror import RunMirror
from pi_workflows.protocol.operations import Operation
from tests.server.servers import Running, members
from tests.views.following import stale_paths
from tests.views.patching import differences

pytestmark = pytest.mark.slow

_WORKFLOW: Final = '''
"""Ask, and go around, telling how far it is."""
from pydantic import BaseModel
from pi_workflows import Context, Progress, checkpoint, compute, define_workflow, edge, switch

class Nothing(BaseModel):
    pass

class Decision(BaseModel):
    rounds: int

class Round(BaseModel):
    route: str
    text: str

ask = checkpoint(summary="How often?", output=Decision)

@compute
def turn(ctx: Context[Nothing]) -> Round:
    done = ctx.visit
    ctx.publish_update_from_thread(Progress(completed=done, total=9, unit="rounds"), key="rounds")
    rounds = ctx.output_of(ask).rounds
    return Round(route="again" if done < rounds else "over", text="x" * 300 * done)

@compute
def last(ctx: Context[Nothing]) -> str:
    return "over"

workflow = define_workflow(
    name="around",
    input=Nothing,
    start="ask",
    nodes={"ask": ask, "turn": turn, "last": last},
    edges=[
        edge("ask", "turn"),
        switch("turn", on="$.route", cases={"again": "turn", "over": "last"}),
    ],
)
'''
RUN: Final = "run"


@dataclass
class Seen:
    """What a client saw of the run.

    Attributes:
        changes: What changed, in order.
        is_waiting: Set when the run waits for its answer.
        differs: How the mirror differs from the view of the end.
    """

    changes: list[Change] = field(default_factory=list[Change])
    is_waiting: threading.Event = field(default_factory=threading.Event)
    differs: list[str] | None = None

    def take(self, mirror: RunMirror, change: Change) -> bool:
        """Take a change; say whether the run is over."""
        assert change.failure is None
        assert change.fault is None
        self.changes.append(change)
        assert mirror.view is not None
        status = members(mirror.view["display"])["status"]
        if status == "waiting":
            self.is_waiting.set()
        return status == "completed"

    def hold(self, mirror: RunMirror, now: Json) -> bool:
        """Compare a mirror with the view of now; say whether that is of the same revision."""
        document: Any = now
        view: Any = mirror.view
        assert mirror.revision is not None
        if document["revision"] > mirror.revision:
            return False
        self.differs = differences(view, document, stale_paths(mirror))
        return True


Watcher = Callable[[Endpoint, Seen], None]


def blocking(endpoint: Endpoint, seen: Seen) -> None:
    """Follow the run with the client that waits."""
    with Client(endpoint) as client, client.watch_run(RUN) as feed:
        for mirror, change in feed:
            if seen.take(mirror, change):
                reply = client.request(Operation.VIEW_RUN_GET, {}, run_id=RUN)
                if seen.hold(mirror, reply.done().receipt):
                    return


async def _follow(client: AsyncClient[Any], seen: Seen) -> None:
    async with client.watch_run(RUN) as feed:
        async for mirror, change in feed:
            if seen.take(mirror, change):
                reply = await client.request(Operation.VIEW_RUN_GET, {}, run_id=RUN)
                if seen.hold(mirror, reply.done().receipt):
                    return


def on_trio(endpoint: Endpoint, seen: Seen) -> None:
    """Follow the run with the client for trio."""

    async def body() -> None:
        async with trio.open_nursery() as nursery:
            client = await trio_client.open_client(nursery, endpoint)
            await _follow(client, seen)
            client.close()

    trio.run(body)


def on_asyncio(endpoint: Endpoint, seen: Seen) -> None:
    """Follow the run with the client for asyncio."""

    async def body() -> None:
        async with asyncio.TaskGroup() as group:
            client = await asyncio_client.open_client(group, endpoint)
            await _follow(client, seen)
            client.close()

    asyncio.run(body())


WATCHERS: Final[dict[str, Watcher]] = {
    "blocking": blocking,
    "trio": on_trio,
    "asyncio": on_asyncio,
}


def test_every_client_follows_a_run_to_its_end(running: Running) -> None:
    """By one snapshot and by patches from then on each has what a fresh view shows in the end."""
    workflows = running.directory.parent / "project" / ".pi" / "workflows"
    workflows.mkdir(parents=True)
    (workflows / "around_workflow.py").write_text(_WORKFLOW)
    running.start()
    seen = {name: Seen() for name in WATCHERS}
    with running.client() as client, ThreadPoolExecutor(len(WATCHERS)) as pool:
        _start(client, workflows.parent.parent)
        ends = [
            pool.submit(watch, _endpoint(running.directory), seen[name])
            for name, watch in WATCHERS.items()
        ]
        for each in seen.values():
            assert each.is_waiting.wait(60)
        _answer(client, 9)
        for end in ends:
            end.result(60)
    for name, each in seen.items():
        assert each.differs == [], name
        whole = [change.is_snapshot for change in each.changes]
        assert whole == [True, *[False] * (len(whole) - 1)], name
        targets = {target for change in each.changes for target in change.targets}
        assert targets >= {"graph/", "timeline/trace:tail", "replay/steps:reload"}, name


def _endpoint(directory: Path) -> Endpoint:
    """Return where a server listens, for a client of its own."""
    return Endpoint(str(directory / "host" / "host.sock"), package_version())


def _start(client: Client, project: Path) -> None:
    """Start the run."""
    request: Json = {"projectPath": str(project), "target": "around", "input": {}}
    resolved = members(client.request(Operation.WORKFLOW_RESOLVE, request).done().receipt)
    payload: Json = {
        **resolved,
        "projectPath": str(project),
        "originSessionId": "local-run",
        "executionMode": "headless",
    }
    client.request(Operation.RUN_START, payload, run_id=RUN).done()


def _answer(client: Client, rounds: int) -> None:
    """Answer the run's question."""
    view = members(client.request(Operation.VIEW_RUN_GET, {}, run_id=RUN).done().receipt)
    request = members(members(view["state"])["interaction"])
    revision = request["revision"]
    assert isinstance(revision, int)
    payload: Json = {
        "requestId": request["requestId"],
        "submissionId": "submission",
        "input": {"rounds": rounds},
    }
    client.request(
        Operation.CHECKPOINT_ANSWER, payload, run_id=RUN, expected_revision=revision
    ).done()
