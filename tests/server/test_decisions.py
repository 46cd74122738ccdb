"""Who decides over the socket: only who proved the passphrase, in time, once."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Final

import pytest
import trio

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import AuthorityDenied, LimitExceeded, Outcome, TransitionDenied
from pi_workflows.base.limits import IDLE_EXIT_MS, OPERATOR_PROOF_MS
from pi_workflows.base.sql import SqlValue, Statement, plain
from pi_workflows.domain.fact import Actor, Command
from pi_workflows.domain.run.claim import ClaimRun, MarkReady
from pi_workflows.domain.run.control import PauseRun
from pi_workflows.domain.run.start import Source, StartRun
from pi_workflows.kernel.order import Answer, Claimant, Order
from pi_workflows.protocol.envelope import Response
from pi_workflows.server.launch_options import LaunchOptions
from pi_workflows.server.operator_key import change_key, create_key, read_key
from tests.kernel.deciding import (
    DEFAULT,
    EXPIRY,
    RUN,
    Terms,
    asks,
    decision_of,
    gated,
    request_of,
)
from tests.kernel.harness import begin
from tests.server.bench import Bench, Peer, run, server
from tests.server.coordinating import claim, coordinate, members

PASSPHRASE: Final = "correct horse"  # noqa: S105 - of nobody
_EVERYTHING: Final = Statement(
    "resolutions", "SELECT outcome, provenance, actor_id FROM human_decision_resolutions"
)
_CANDIDATES: Final = Statement(
    "candidates", "SELECT source, outcome FROM human_decision_submissions ORDER BY submitted_at"
)


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that costs nothing; the command's own test pays for a real one."""
    monkeypatch.setattr("pi_workflows.server.operator_key.SCRYPT_COST", 16)


async def commit(bench: Bench, command: Command) -> Answer:
    """Decide one command as the server does."""
    answer = await bench.parts.services.writer.submit(
        Order(
            name="test",
            commands=(command,),
            actor=Actor("host", "host-1"),
            command_id=ids.random_id("command"),
            claimant=Claimant("host-1", b"t" * 32, bench.parts.services.clock.now_ms() + 60_000),
            run_id=command.run_id,
        )
    )
    assert answer.error is None, answer
    return answer


async def asked(bench: Bench, terms: Terms = None, *, session: str | None = None) -> None:
    """Bring a run to where it asks a person."""
    start = StartRun(
        run_id=RUN,
        project_path="/",
        workflow_name="sample",
        workflow_ref="sample",
        sources=(Source("", "file", "/sample_workflow.py", "a" * 64),),
        definition=gated(terms),
        run_input=Blob.json(None),
        launch_options=LaunchOptions(environment={}, source_files=()).blob(),
        title=None,
        origin_session_id=session or f"local-{RUN}",
        execution_mode="interactive" if session else "headless",
    )
    gate = begin("gate", node_type="checkpoint")
    for command in (start, ClaimRun(RUN), MarkReady(RUN), gate, asks(terms=terms)):
        await commit(bench, command)


async def decide(
    peer: Peer, choice: str = "go", *, name: str = "s1", claimed: dict[str, Json] | None = None
) -> Response:
    """Answer the decision."""
    payload: dict[str, Json] = {
        "requestId": request_of(),
        "submissionId": name,
        "response": {"choice": choice},
        **(claimed or {}),
    }
    return await peer.ask("decision.answer", payload, run_id=RUN, expected_revision=1)


async def prove(peer: Peer, passphrase: str = PASSPHRASE) -> Response:
    """Prove the passphrase."""
    return await peer.ask("operator.prove", {"passphrase": passphrase})


def code(response: Response) -> Json:
    """Return the code of a refusal."""
    return members(response.receipt)["code"]


def rows(bench: Bench, statement: Statement) -> list[tuple[SqlValue, ...]]:
    """Return what a query finds."""
    with bench.parts.services.store.snapshot() as read:
        return list(read.all(plain, statement))


def test_only_who_proved_the_passphrase_decides(state_dir: Path) -> None:
    """Control and session are refused and remembered; after the proof the same words decide."""

    async def body() -> None:
        async with server(state_dir) as bench:
            key = create_key(bench.state.operator, PASSPHRASE)
            await asked(bench, session="session-1")
            peer = await bench.connect()
            refused = await decide(peer)
            assert (refused.outcome, code(refused)) == (Outcome.REJECTED, "decisionProtected")
            pi = await bench.connect("pi")
            claimed = claim(await coordinate(pi))
            refused = await decide(pi, name="s2", claimed=claimed)
            assert (refused.outcome, code(refused)) == (Outcome.REJECTED, "decisionProtected")
            assert rows(bench, _CANDIDATES) == [("control", "rejected")] * 2
            proved = await prove(pi)
            assert proved.receipt == {
                "proved": True,
                "keyId": key.key_id,
                "expiresInMs": OPERATOR_PROOF_MS,
            }
            refused = await decide(peer, name="s3")
            assert code(refused) == "decisionProtected"
            done = await decide(pi, name="s4", claimed=claimed)
            assert done.outcome is Outcome.ACCEPTED
            assert key.key_id not in str(done.receipt)
            assert rows(bench, _EVERYTHING) == [("accepted", "human", f"operator:{key.key_id}")]

    run(body)


def test_the_passphrase_is_kept_nowhere(state_dir: Path) -> None:
    """No receipt, no log line, no file but the key's own, which holds no passphrase either."""

    async def body() -> None:
        async with server(state_dir) as bench:
            create_key(bench.state.operator, PASSPHRASE)
            peer = await bench.connect()
            before = bench.receipt_count()
            assert (await prove(peer, "wrong passphrase")).outcome is Outcome.REJECTED
            assert (await prove(peer)).outcome is Outcome.ACCEPTED
            assert bench.receipt_count() == before

    run(body)
    _search(state_dir, (PASSPHRASE, "wrong passphrase"))


def _search(directory: Path, words: tuple[str, ...]) -> None:
    """Look for words in every file."""
    files = [file for file in directory.rglob("*") if file.is_file()]
    assert {"operator.json", "state.sqlite", "server.log"} <= {file.name for file in files}
    for file in files:
        content = file.read_bytes()
        assert not any(word.encode() in content for word in words), file


def test_a_proof_is_of_one_connection_for_ten_minutes(state_dir: Path) -> None:
    """Another connection has to prove it itself, and so has this one later."""

    async def body() -> None:
        async with server(state_dir) as bench:
            create_key(bench.state.operator, PASSPHRASE)
            await asked(bench)
            peer, other = await bench.connect(), await bench.connect("other")
            await prove(peer)
            assert code(await decide(other)) == "decisionProtected"
            await trio.sleep(OPERATOR_PROOF_MS / 1_000)
            assert code(await decide(peer, name="s2")) == "decisionProtected"
            await prove(peer)
            assert (await decide(peer, name="s3")).outcome is Outcome.ACCEPTED

    run(body)


def test_a_proof_ends_with_its_key(state_dir: Path) -> None:
    """A changed passphrase proves nothing more, nor does one whose file others may read."""

    async def body() -> None:
        async with server(state_dir) as bench:
            file = bench.state.operator
            create_key(file, PASSPHRASE)
            await asked(bench)
            peer = await bench.connect()
            await prove(peer)
            change_key(file, PASSPHRASE, "another one")
            assert code(await decide(peer)) == "decisionProtected"
            assert code(await prove(peer)) == "passphraseWrong"
            assert (await prove(peer, "another one")).outcome is Outcome.ACCEPTED
            file.chmod(0o640)
            assert code(await decide(peer, name="s2")) == "operatorMissing"
            assert code(await prove(peer, "another one")) == "operatorUnsafe"

    run(body)


def test_without_an_operator_nobody_decides(state_dir: Path) -> None:
    """The refusal says what is missing; a decision without a deadline waits for it."""

    async def body() -> None:
        async with server(state_dir) as bench:
            await asked(bench)
            peer = await bench.connect()
            assert code(await prove(peer)) == "operatorMissing"
            refused = await decide(peer)
            assert (refused.outcome, code(refused)) == (Outcome.REJECTED, "operatorMissing")
            assert rows(bench, _EVERYTHING) == []

    run(body)


def test_guessing_is_slow_for_the_whole_server(state_dir: Path) -> None:
    """One attempt a second; after five failures each waits twice as long; a success ends that."""

    async def body() -> None:
        async with server(state_dir) as bench:
            create_key(bench.state.operator, PASSPHRASE)
            first, second = await bench.connect("a"), await bench.connect("b")
            began = trio.current_time()
            for number in range(5):
                peer = (first, second)[number % 2]
                assert code(await prove(peer, "a wrong one")) == "passphraseWrong"
            assert trio.current_time() - began >= 4
            throttled = await prove(second)
            assert code(throttled) == "operatorThrottled"
            await trio.sleep(2)
            assert code(await prove(second, "a wrong one")) == "passphraseWrong"
            await trio.sleep(2.5)
            assert code(await prove(first)) == "operatorThrottled"
            await trio.sleep(1)
            assert (await prove(first)).outcome is Outcome.ACCEPTED
            await trio.sleep(1)
            assert code(await prove(second, "a wrong one")) == "passphraseWrong"
            assert (await prove(second)).outcome is Outcome.ACCEPTED

    run(body)


@pytest.mark.parametrize(
    ("more", "ended"),
    [
        (DEFAULT, ("accepted", "timeout_policy", None)),
        (EXPIRY, ("cancelled", "expired_no_default", None)),
    ],
)
@pytest.mark.parametrize("is_paused", [False, True])
def test_a_deadline_closes_a_decision_by_itself(
    state_dir: Path, more: dict[str, Json], ended: tuple[str, ...], *, is_paused: bool
) -> None:
    """To the second, paused or not; who comes a moment later learns what was decided."""

    async def body() -> None:
        async with server(state_dir) as bench:
            create_key(bench.state.operator, PASSPHRASE)
            await asked(bench, more)
            if is_paused:
                await commit(bench, PauseRun(RUN))
            peer = await bench.connect()
            await trio.sleep(599)
            assert rows(bench, _EVERYTHING) == []
            await prove(peer)
            await trio.sleep(1.1)
            assert rows(bench, _EVERYTHING) == [ended]
            late = await decide(peer)
            assert (late.outcome, code(late)) == (Outcome.CONFLICT, "alreadyDecided")
            told = members(members(late.receipt)["decision"])
            assert (told["decisionId"], told["provenance"]) == (decision_of(), ended[1])

    run(body)


def test_a_deadline_that_came_while_no_server_ran_counts(state_dir: Path) -> None:
    """Downtime is no time to decide in: the next server closes the decision first of all."""

    async def body() -> None:
        async with server(state_dir) as bench:
            await asked(bench, DEFAULT)
        await trio.sleep(700)
        async with server(state_dir) as bench:
            await trio.sleep(0.1)
            assert rows(bench, _EVERYTHING) == [("accepted", "timeout_policy", None)]

    run(body)


def test_an_answer_closes_first_what_is_over(state_dir: Path) -> None:
    """Who answers late gets the default's resolution even before the clockwork looked."""

    async def body() -> None:
        async with server(state_dir) as bench:
            create_key(bench.state.operator, PASSPHRASE)
            await asked(bench, DEFAULT)
            peer = await bench.connect()
            await trio.sleep(599)
            await prove(peer)
            deadlines = bench.parts.services.deadlines
            await trio.sleep(1)
            await deadlines.close_due(RUN)
            late = await decide(peer)
            assert code(late) == "alreadyDecided"

    run(body)


def test_a_future_deadline_keeps_an_idle_server(state_dir: Path) -> None:
    """It stays for the decision, and leaves once there is none to wait for."""

    async def body() -> None:
        async with server(state_dir, leaves_when_idle=True) as bench:
            stop = bench.parts.services.stop
            await asked(bench, {"expiresMs": 4 * IDLE_EXIT_MS})
            await commit(bench, PauseRun(RUN))
            await trio.sleep(3 * IDLE_EXIT_MS / 1_000)
            assert not stop.is_requested
            await trio.sleep(IDLE_EXIT_MS / 1_000 + 1)
            assert not stop.is_requested
            await trio.sleep(IDLE_EXIT_MS / 1_000 + 1)
            assert stop.is_requested

    run(body)


def test_a_key_is_made_once_and_changed_with_its_passphrase(tmp_path: Path) -> None:
    """The file is ours alone, is never replaced by chance, and gets a new ID with each key."""
    file = tmp_path / "operator.json"
    key = create_key(file, PASSPHRASE)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read_key(file) == key
    assert key.verifies(PASSPHRASE)
    assert not key.verifies(PASSPHRASE + " ")
    with pytest.raises(TransitionDenied) as exists:
        create_key(file, "another one")
    assert exists.value.reason_code == "operatorExists"
    with pytest.raises(AuthorityDenied) as wrong:
        change_key(file, "another one", "another one")
    assert wrong.value.reason_code == "passphraseWrong"
    with pytest.raises(LimitExceeded):
        change_key(file, PASSPHRASE, "short")
    assert read_key(file) == key
    changed = change_key(file, PASSPHRASE, "another one")
    assert changed.key_id != key.key_id
    assert read_key(file) == changed
    assert [each.name for each in tmp_path.iterdir()] == ["operator.json"]


@pytest.mark.parametrize("harm", ["link", "open", "torn", "huge", "twin"])
def test_a_file_that_proves_nothing_is_not_used(tmp_path: Path, harm: str) -> None:
    """What others may write, a link, and what is no key are refused, and never taken for none."""
    file = tmp_path / "operator.json"
    create_key(file, PASSPHRASE)
    match harm:
        case "link":
            file.rename(tmp_path / "real.json")
            file.symlink_to(tmp_path / "real.json")
        case "open":
            file.chmod(0o604)
        case "torn":
            file.write_bytes(file.read_bytes()[:-20])
        case "huge":
            file.write_bytes(b" " * 5_000)
        case _:
            (tmp_path / "twin.json").hardlink_to(file)
    with pytest.raises(AuthorityDenied) as unsafe:
        read_key(file)
    assert unsafe.value.reason_code == "operatorUnsafe"
