"""What is asked in a session's name: by whom, under which epoch, about which runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.protocol.envelope import Response
from pi_workflows.protocol.operations import OPERATIONS, Need, Operation
from tests.server.bench import Peer, run, server
from tests.server.coordinating import (
    PAYLOADS,
    begin,
    claim,
    code,
    coordinate,
    members,
    report,
)

# What is repeated finds what it reported or handed in, so that no receipt is kept.
_FOUND_AGAIN = {
    Operation.WORKFLOW_TURN_REPORT,
    Operation.INTERACTION_SUBMIT,
    Operation.INTERACTION_ASSISTANT,
}
# What is applied to settings that are there, before anything is remembered.
_JUDGED_FIRST = {Operation.RUN_CHANGE_SETTINGS}


@pytest.mark.parametrize("operation", list(PAYLOADS))
def test_who_may_ask_in_a_sessions_name(state_dir: Path, operation: Operation) -> None:
    """The epoch's own connection after its report; what is refused before leaves no receipt."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer, other = await bench.connect("peer"), await bench.connect("other")
            await begin(bench, other)
            receipts = bench.receipt_count()

            async def ask(who: Peer, claimed: dict[str, Json]) -> Response:
                spec = OPERATIONS[operation]
                return await who.ask(
                    operation.value,
                    {**PAYLOADS[operation], **claimed},
                    run_id="run-1" if spec.run_id is Need.REQUIRED else None,
                    expected_revision=1 if spec.expected_revision is Need.REQUIRED else None,
                )

            stale = await coordinate(peer)
            epoch = await coordinate(peer, is_reported=False)
            is_report = operation is Operation.WORKFLOW_MESSAGE_REPORT_BRANCH
            if not is_report:
                assert code(await ask(peer, claim(epoch))) == "branchReportRequired"
                await report(peer, epoch)
            for who, claimed in (
                (peer, claim(stale)),
                (peer, claim(epoch + 1)),
                (peer, claim(epoch, "session-2")),
                (other, claim(epoch)),
            ):
                reply = await ask(who, claimed)
                assert (reply.outcome, code(reply)) == (Outcome.REJECTED, "notCoordinator")
            assert bench.receipt_count() == receipts
            reply = await ask(peer, claim(epoch))
            if is_report:
                assert reply.outcome is Outcome.ACCEPTED
                assert code(await ask(peer, {})) == "authorityDenied"
                assert bench.receipt_count() == receipts
            elif operation is Operation.SESSION_VIEW_CLEAR_TERMINAL:
                assert reply.receipt == {"cleared": False}
                assert bench.receipt_count() == receipts + 1
            elif operation is Operation.FOLLOW_UP_QUEUE:
                assert reply.outcome is Outcome.ACCEPTED
                assert bench.receipt_count() == receipts + 1
            else:
                # The domain has its word: the run has not ended, asks nothing and told nothing.
                assert code(reply) in {
                    "runNotTerminal",
                    "requestMissing",
                    "captureMissing",
                    "messageMissing",
                    "settingsMissing",
                    "followUpMissing",
                }
                is_remembered = operation not in _FOUND_AGAIN | _JUDGED_FIRST
                assert bench.receipt_count() == receipts + is_remembered

    assert set(PAYLOADS) == {each for each, spec in OPERATIONS.items() if spec.is_session}
    run(body)


def test_a_repeated_request_needs_the_authority_of_now(state_dir: Path) -> None:
    """A receipt is adopted under a new epoch, and under a stale one it is not even looked for."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            stale = await coordinate(peer)
            await begin(bench, peer)
            await peer.ask("run.cancel", run_id="run-1")
            state = members((await peer.ask("view.run.get", run_id="run-1")).receipt)
            revision = state["runRevision"]
            assert isinstance(revision, int)

            async def restart(epoch: int) -> Response:
                return await peer.ask(
                    "run.restart",
                    claim(epoch),
                    run_id="run-1",
                    expected_revision=revision,
                    key="again",
                )

            first = await restart(stale)
            assert first.outcome is Outcome.ACCEPTED
            epoch = await coordinate(peer)
            assert code(await restart(stale)) == "notCoordinator"
            again = await restart(epoch)
            assert (again.outcome, again.receipt) == (Outcome.ADOPTED, first.receipt)

    run(body)


def test_a_session_speaks_about_its_own_runs_only(state_dir: Path) -> None:
    """A coordinator starts, pauses and restarts its session's runs, and nobody else's."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer, control = await bench.connect("peer"), await bench.connect("control")
            epoch = await coordinate(peer)
            assert (await begin(bench, control, "theirs", "session-2")).outcome is Outcome.ACCEPTED
            receipts = bench.receipt_count()
            foreign = await begin(bench, peer, "foreign", "session-3")
            assert (foreign.outcome, code(foreign)) == (Outcome.REJECTED, "runOfAnotherSession")
            for operation in ("run.pause", "run.resume", "run.cancel"):
                reply = await peer.ask(operation, run_id="theirs")
                assert (reply.outcome, code(reply)) == (Outcome.REJECTED, "runOfAnotherSession")
            for operation, payload in PAYLOADS.items():
                if OPERATIONS[operation].run_id is Need.REQUIRED:
                    needs = OPERATIONS[operation].expected_revision
                    revision = 1 if needs is Need.REQUIRED else None
                    reply = await peer.ask(
                        operation.value,
                        {**payload, **claim(epoch)},
                        run_id="theirs",
                        expected_revision=revision,
                    )
                    assert code(reply) == "runOfAnotherSession"
            assert bench.receipt_count() == receipts
            assert (await begin(bench, peer)).outcome is Outcome.ACCEPTED
            for operation in ("run.pause", "run.resume", "run.cancel"):
                reply = await peer.ask(operation, run_id="run-1")
                assert reply.outcome is Outcome.ACCEPTED
            missing = await peer.ask("run.pause", run_id="missing")
            assert (missing.outcome, code(missing)) == (Outcome.NOT_FOUND, "runMissing")
            assert (await control.ask("run.cancel", run_id="theirs")).outcome is Outcome.ACCEPTED

    run(body)


def test_a_session_restarts_interactive_runs_only(state_dir: Path) -> None:
    """A run of the session that never reserved it is for a control request to restart."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            epoch = await coordinate(peer)
            payload = bench.start("run-1", originSessionId="session-1")
            await peer.ask("run.start", payload, run_id="run-1")
            await peer.ask("run.cancel", run_id="run-1")
            state = members((await peer.ask("view.run.get", run_id="run-1")).receipt)
            revision = state["runRevision"]
            assert isinstance(revision, int)
            for claimed, outcome in ((claim(epoch), Outcome.REJECTED), ({}, Outcome.ACCEPTED)):
                reply = await peer.ask(
                    "run.restart", claimed, run_id="run-1", expected_revision=revision
                )
                assert reply.outcome is outcome

    run(body)


def test_a_busy_session_takes_no_second_run(state_dir: Path) -> None:
    """An interactive run reserves its session until it ends."""

    async def body() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect()
            await begin(bench, peer)
            busy = await begin(bench, peer, "run-2")
            assert (busy.outcome, code(busy)) == (Outcome.CONFLICT, "sessionBusy")
            await peer.ask("run.cancel", run_id="run-1")
            assert (await begin(bench, peer, "run-3")).outcome is Outcome.ACCEPTED

    run(body)
