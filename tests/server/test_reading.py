"""Reads answer from one moment, store nothing, and say where they stand."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from tests.server.bench import Bench, Peer, run, server


def _members(value: Json) -> dict[str, Json]:
    """Return a JSON object's members."""
    assert isinstance(value, dict)
    return value


def _scratch_files(directory: Path) -> list[str]:
    """Return the temporary files that were left in a directory."""
    return [path.name for path in directory.glob(".*")]


async def _paused(bench: Bench, peer: Peer) -> None:
    """Start two runs and pause the first."""
    for run_id in ("run-1", "run-2"):
        await bench.started(peer, run_id)
    await peer.ask("run.pause", run_id="run-1")


def test_a_run_is_read_with_its_revision(state_dir: Path) -> None:
    """The run view comes under both names, at its presentation revision."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await _paused(bench, peer)
            for operation in ("view.run.get", "run.status"):
                reply = await peer.ask(operation, run_id="run-1")
                view = _members(reply.receipt)
                assert (view["schema"], view["runId"]) == ("pi-workflows.run-view.v1", "run-1")
                assert (reply.revision, view["revision"], view["runRevision"]) == (2, 2, 2)
                assert _members(view["display"])["status"] == "paused"

    run(body)


def test_lists_name_every_run(state_dir: Path) -> None:
    """`run.list` gives queue objects, `view.runs.page` pages with a filter, newest first."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await _paused(bench, peer)
            queue = (await peer.ask("run.list", {"limit": 1})).receipt
            assert isinstance(queue, list)
            assert [_members(item)["runId"] for item in queue] == ["run-2"]
            page = _members((await peer.ask("view.runs.page")).receipt)
            assert (page["start"], page["total"]) == (0, 2)
            where: Json = {"status": "paused", "runIdPrefix": "run-"}
            found = _members((await peer.ask("view.runs.page", {"filter": where})).receipt)
            items = found["items"]
            assert isinstance(items, list)
            assert [_members(item)["runId"] for item in items] == ["run-1"]

    run(body)


def test_a_list_that_changed_is_a_conflict(state_dir: Path) -> None:
    """Going on in another revision of the list gives the page of now, as a conflict."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            first = _members((await peer.ask("view.runs.page")).receipt)
            going_on: Json = {"cursor": 0, "revision": first["revision"]}
            same = await peer.ask("view.runs.page", going_on)
            assert (same.outcome, same.receipt) == (Outcome.ACCEPTED, first)
            await bench.started(peer, "run-2")
            changed = await peer.ask("view.runs.page", going_on)
            assert changed.outcome is Outcome.CONFLICT
            assert _members(changed.receipt)["total"] == 2

    run(body)


@pytest.mark.parametrize("kind", ["steps", "trace", "trace_at_step", "updates"])
def test_pages_name_their_revision(state_dir: Path, kind: str) -> None:
    """A page of a run echoes what it is of; one of another revision is a conflict."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await _paused(bench, peer)
            reply = await peer.ask("view.page", {"kind": kind, "cursor": 0}, run_id="run-1")
            page = _members(reply.receipt)
            assert (page["kind"], page["runId"], page["cursor"]) == (kind, "run-1", 0)
            assert (reply.revision, page["revision"]) == (2, 2)
            assert page["total"] == (2 if kind.startswith("trace") else 0)
            late = await peer.ask(
                "view.page", {"kind": kind, "expectedRevision": 1}, run_id="run-1"
            )
            assert late.outcome is Outcome.CONFLICT

    run(body)


def test_content_is_read_in_parts(state_dir: Path) -> None:
    """A value that a view names by reference is read until it is complete, and of its run only."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            text = "x" * 300_000
            await peer.ask("run.start", bench.start(input={"task": text}), run_id="run-1")
            view = _members((await peer.ask("view.run.get", run_id="run-1")).receipt)
            reference = _members(_members(_members(view["state"])["input"])["$artifact"])
            content = bytearray()
            is_complete: Json = False
            while not is_complete:
                payload: Json = {"path": reference["path"], "offset": len(content)}
                chunk = _members((await peer.ask("view.content", payload, run_id="run-1")).receipt)
                data = chunk["data"]
                assert isinstance(data, str)
                content += base64.b64decode(data)
                is_complete = chunk["complete"]
            assert bytes(content) == b'{"task":"' + text.encode() + b'"}'
            await bench.started(peer, "run-2")
            first: Json = {"path": reference["path"], "offset": 0}
            foreign = await peer.ask("view.content", first, run_id="run-2")
            assert foreign.outcome is Outcome.NOT_FOUND

    run(body)


def test_all_that_a_run_gave_is_fetched(state_dir: Path) -> None:
    """The page refers to a document that can be fetched at once, by this run's viewers only."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await _paused(bench, peer)
            question: Json = {"kind": "aggregate", "expectedRevision": 2}
            reply = await peer.ask("view.page", question, run_id="run-1")
            page = _members(reply.receipt)
            assert (reply.revision, page["revision"], page["total"]) == (2, 2, 1)
            assert (page["kind"], page["start"], "cursor" in page) == ("aggregate", 0, False)
            assert isinstance(page["items"], list)
            reference = _members(_members(page["items"][0])["$artifact"])
            first: Json = {"path": reference["path"], "offset": 0}
            chunk = _members((await peer.ask("view.content", first, run_id="run-1")).receipt)
            assert isinstance(chunk["data"], str)
            assert base64.b64decode(chunk["data"]) == (
                b'{"outputs":{},"results":{},"runId":"run-1",'
                b'"schema":"pi-workflows.run-aggregate.v1"}'
            )
            foreign = await peer.ask("view.content", first, run_id="run-2")
            assert foreign.outcome is Outcome.NOT_FOUND
            late: Json = {"kind": "aggregate", "expectedRevision": 1}
            assert (await peer.ask("view.page", late, run_id="run-1")).outcome is Outcome.CONFLICT
            placed: Json = {"kind": "aggregate", "cursor": 0}
            assert (await peer.ask("view.page", placed, run_id="run-1")).outcome is Outcome.REJECTED
            again = await peer.ask("view.page", {"kind": "aggregate"}, run_id="run-1")
            assert again.receipt == reply.receipt

    run(body)


def test_a_run_is_searched(state_dir: Path) -> None:
    """Matches come with the revision at which the run was searched; a bad cursor is refused."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await _paused(bench, peer)
            reply = await peer.ask("view.search", {"query": "ONE"}, run_id="run-1")
            page = _members(reply.receipt)
            assert (page["schema"], page["runId"]) == ("pi-workflows.search-page.v1", "run-1")
            assert (reply.revision, page["revision"], page["complete"]) == (2, 2, True)
            items = page["items"]
            assert isinstance(items, list)
            assert [_members(item)["nodeId"] for item in items] == ["one"]
            going_on: Json = {"query": "ONE", "cursor": "1.0.0.00000000"}
            refused = await peer.ask("view.search", going_on, run_id="run-1")
            assert (refused.outcome, _members(refused.receipt)["code"]) == (
                Outcome.REJECTED,
                "searchCursor",
            )
            unknown = await peer.ask("view.search", {"query": "one"}, run_id="run-3")
            assert unknown.outcome is Outcome.NOT_FOUND

    run(body)


def test_effects_are_listed(state_dir: Path) -> None:
    """Effects are listed of all runs or of one; of an unknown run there are none to list."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            for payload in ({}, {"runId": "run-1"}, {"status": "applied"}):
                reply = await peer.ask("effect.list", dict(payload))
                assert reply.receipt == {"items": [], "total": 0}
            unknown = await peer.ask("effect.list", {"runId": "run-2"})
            assert unknown.outcome is Outcome.NOT_FOUND
            payload_of_none: Json = {
                "effectId": "effect-1",
                "attemptNumber": 1,
                "action": "confirm",
                "evidence": "I looked.",
            }
            missing = await peer.ask("effect.resolve", payload_of_none)
            assert _members(missing.receipt)["code"] == "effectMissing"

    run(body)


def test_reads_leave_no_receipts(state_dir: Path) -> None:
    """Only commands are remembered."""

    async def body() -> None:
        async with server(state_dir, runners_max=1) as bench:
            peer = await bench.connect()
            before = bench.receipt_count()
            for operation in ("run.list", "view.runs.page", "effect.list", "server.status"):
                assert (await peer.ask(operation)).outcome is Outcome.ACCEPTED
            for operation in ("state.status", "state.verify"):
                assert (await peer.ask(operation)).outcome is Outcome.ACCEPTED
            assert bench.receipt_count() == before

    run(body, mock=False)


def test_a_sound_state_is_valid(state_dir: Path) -> None:
    """Verification and status find nothing in a state that was only written by commands."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await _paused(bench, peer)
            verified = _members((await peer.ask("state.verify")).receipt)
            assert (verified["valid"], verified["violations"]) == (True, [])
            checked = verified["checked"]
            assert isinstance(checked, list)
            assert {"integrity", "replay", "eventDigest"} <= set(map(str, checked))
            status = _members((await peer.ask("state.status")).receipt)
            assert _members(status["counts"])["runs"] == 2
            assert status["violations"] == []
            assert _scratch_files(state_dir) == []

    run(body, mock=False)


def test_the_status_says_what_the_disk_allows(state_dir: Path) -> None:
    """Commits are measured, and with a calibration they are multiples of the disk's own."""

    async def body() -> None:
        async with server(state_dir, runners_max=3) as bench:
            peer = await bench.connect()
            for number in range(3):
                await peer.ask("run.pause", run_id=f"run-{number}")
            plain = _members((await peer.ask("server.status")).receipt)
            assert (plain["state"], plain["queuedRuns"]) == ("running", 0)
            assert (plain["maxRunners"], plain["connectedClients"]) == (3, 1)
            assert "calibration" not in plain
            commit = _members(plain["commit"])
            samples = commit["samples"]
            assert isinstance(samples, int)
            assert samples >= 3
            reply = await peer.ask("server.status", {"calibrate": True})
            calibration = _members(_members(reply.receipt)["calibration"])
            assert calibration["samples"] == 200
            assert {"ratioP50", "ratioP99"} <= calibration.keys()
            later = _members((await peer.ask("server.status")).receipt)
            assert _members(later["calibration"])["measuredAt"] == calibration["measuredAt"]
            assert _scratch_files(state_dir) == []

    run(body, mock=False)
