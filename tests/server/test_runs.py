"""Commands about runs: what is checked before they are decided, and what they come to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.base.limits import DEFINITION_BYTES_MAX, INPUT_BYTES_MAX
from tests.server.bench import run, server


def _code(receipt: Json) -> Json:
    """Return the code of a refusal."""
    assert isinstance(receipt, dict)
    return receipt["code"]


def test_a_run_is_started_once(state_dir: Path) -> None:
    """The same run under the same ID is adopted; another one under it is a conflict."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            first = await bench.started(peer)
            assert (first.receipt, first.revision) == ({"runId": "run-1", "status": "queued"}, 1)
            again = await peer.ask("run.start", bench.start(), run_id="run-1")
            assert (again.outcome, again.receipt) == (Outcome.ADOPTED, first.receipt)
            other = await peer.ask(
                "run.start", bench.start(input={"task": "other"}), run_id="run-1"
            )
            assert (other.outcome, _code(other.receipt)) == (Outcome.CONFLICT, "runIdTaken")

    run(body)


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"workflowName": "other"}, "definitionMismatch", "workflowName"),
        ({"definitionDigest": "sha256:" + "0" * 64}, "definitionMismatch", "definitionDigest"),
        ({"definitionSnapshot": {}}, "payloadInvalid", None),
        ({"sourceFiles": []}, "payloadInvalid", "sourceFiles"),
        (
            {"sourceFiles": [{"mount": "", "path": "/x.py", "sha256": "0" * 64}]},
            "definitionMismatch",
            "workflowSource.revision",
        ),
        ({"projectPath": "/no/such/directory"}, "projectMissing", "projectPath"),
        ({"projectPath": "relative"}, "payloadInvalid", "projectPath"),
        ({"input": "x" * INPUT_BYTES_MAX}, "valueTooLarge", "input"),
        ({"definitionSnapshot": {"x": "x" * DEFINITION_BYTES_MAX}}, "valueTooLarge", None),
        ({"launchOptions": {"environment": {"SECRET": "1"}}}, "payloadInvalid", None),
        (
            {"launchOptions": {"environment": {}, "token": "1"}},
            "payloadInvalid",
            "launchOptions.token",
        ),
        ({"executionMode": "detached"}, "payloadInvalid", "executionMode"),
        ({"title": "x" * 1_001}, "payloadInvalid", "title"),
    ],
)
def test_a_start_that_contradicts_itself_is_refused(
    state_dir: Path, changes: dict[str, Json], code: str, field: str | None
) -> None:
    """Whatever a client sends is checked before it is stored, and the refusal names the field."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            reply = await peer.ask("run.start", {**bench.start(), **changes}, run_id="run-1")
            assert reply.outcome is Outcome.REJECTED
            assert isinstance(reply.receipt, dict)
            if code != "payloadInvalid":
                assert reply.receipt["code"] == code
            if field is not None:
                assert reply.receipt["field"] == field
            assert (await peer.ask("run.list")).receipt == []

    run(body)


def test_the_launching_clients_variables_are_kept(state_dir: Path) -> None:
    """The five variables that are a client's to say are accepted as they are."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            names = ("PATH", "VIRTUAL_ENV", "LANG", "LC_ALL", "TZ")
            variables: Json = dict.fromkeys(names, "x")
            options: Json = {"environment": variables}
            payload = bench.start(launchOptions=options)
            reply = await peer.ask("run.start", payload, run_id="run-1")
            assert reply.outcome is Outcome.ACCEPTED

    run(body)


@pytest.mark.parametrize("operation", ["run.pause", "run.resume", "run.cancel", "view.run.get"])
def test_an_unknown_run_is_not_found(state_dir: Path, operation: str) -> None:
    """A command or read of a run that is not there says so, by its code."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            reply = await peer.ask(operation, run_id="run-1")
            assert (reply.outcome, _code(reply.receipt)) == (Outcome.NOT_FOUND, "runMissing")

    run(body)


@pytest.mark.parametrize("operation", ["run.pause", "run.resume"])
def test_a_finished_run_takes_no_commands(state_dir: Path, operation: str) -> None:
    """A command to a run that has ended is rejected and names what to do instead."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            await peer.ask("run.cancel", run_id="run-1")
            reply = await peer.ask(operation, run_id="run-1")
            assert (reply.outcome, _code(reply.receipt)) == (Outcome.REJECTED, "runTerminal")

    run(body)


def test_an_old_revision_is_a_conflict(state_dir: Path) -> None:
    """A command that expects the run at another revision does nothing."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            late = await peer.ask("run.cancel", run_id="run-1", expected_revision=7)
            assert (late.outcome, _code(late.receipt)) == (Outcome.CONFLICT, "staleRevision")
            timely = await peer.ask("run.cancel", run_id="run-1", expected_revision=1)
            assert timely.outcome is Outcome.ACCEPTED

    run(body)


def _damage(source: Path, damage: str) -> None:
    """Change a source file in one of the ways in which it can be another one."""
    if damage == "changed":
        source.write_bytes(source.read_bytes() + b"#")
    else:
        source.unlink()
    if damage == "pipe":
        os.mkfifo(source)
    elif damage == "directory":
        source.mkdir()


@pytest.mark.parametrize("damage", ["changed", "gone", "pipe", "directory"])
@pytest.mark.parametrize("operation", ["run.resume", "run.restart"])
def test_a_changed_source_stops_a_run_from_going_on(
    state_dir: Path, operation: str, damage: str
) -> None:
    """Resume and restart hash the sources again: a changed one is refused and changes nothing."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            stop = "run.pause" if operation == "run.resume" else "run.cancel"
            await peer.ask(stop, run_id="run-1")
            before = await peer.ask("view.run.get", run_id="run-1")
            assert isinstance(before.receipt, dict)
            revision = before.receipt["runRevision"]
            assert isinstance(revision, int)
            _damage(bench.source, damage)
            reply = await peer.ask(operation, run_id="run-1", expected_revision=revision, key="k")
            code = "workflowSourceChanged"
            assert (reply.outcome, _code(reply.receipt)) == (Outcome.REJECTED, code)
            after = await peer.ask("view.run.get", run_id="run-1")
            assert after.receipt == before.receipt

    run(body, mock=False)


@pytest.mark.parametrize("operation", ["run.resume", "run.restart"])
def test_an_unchanged_source_lets_a_run_go_on(state_dir: Path, operation: str) -> None:
    """With its files as they were a paused run is queued again, an ended one starts over."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            stop = "run.pause" if operation == "run.resume" else "run.cancel"
            await peer.ask(stop, run_id="run-1")
            view = await peer.ask("view.run.get", run_id="run-1")
            assert isinstance(view.receipt, dict)
            revision = view.receipt["runRevision"]
            assert isinstance(revision, int)
            for outcome in (Outcome.ACCEPTED, Outcome.ADOPTED):
                reply = await peer.ask(
                    operation, run_id="run-1", expected_revision=revision, key="k"
                )
                assert reply.outcome is outcome

    run(body, mock=False)


def test_a_damaged_source_does_not_hide_an_adopted_receipt(state_dir: Path) -> None:
    """A resume that was accepted is adopted when it is repeated, whatever the file is by now."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            await peer.ask("run.pause", run_id="run-1")
            await peer.ask("run.resume", run_id="run-1", key="k")
            _damage(bench.source, "gone")
            again = await peer.ask("run.resume", run_id="run-1", key="k")
            assert again.outcome is Outcome.ADOPTED

    run(body, mock=False)


def test_a_restart_needs_the_revision_that_was_read(state_dir: Path) -> None:
    """A restart without the parent's revision is refused before anything is looked at."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            reply = await peer.ask("run.restart", run_id="run-1")
            assert reply.outcome is Outcome.REJECTED
            assert isinstance(reply.receipt, dict)
            assert reply.receipt["field"] == "expectedRevision"

    run(body)


def test_a_session_that_nobody_coordinates_is_refused(state_dir: Path) -> None:
    """A control connection cannot speak for a session by naming it."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            reply = await peer.ask(
                "run.restart",
                {"targetSessionId": "session", "coordinatorEpoch": 1},
                run_id="run-1",
                expected_revision=1,
            )
            assert (reply.outcome, _code(reply.receipt)) == (Outcome.REJECTED, "notCoordinator")

    run(body)


def test_an_answer_to_nothing_is_not_found(state_dir: Path) -> None:
    """An answer to a request that the run never made is refused and remembered."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await bench.started(peer)
            payload: Json = {"requestId": "request-1", "submissionId": "s", "input": True}
            for _ in range(2):
                reply = await peer.ask("checkpoint.answer", payload, run_id="run-1", key="k")
                assert (reply.outcome, _code(reply.receipt)) == (
                    Outcome.NOT_FOUND,
                    "requestMissing",
                )

    run(body)
