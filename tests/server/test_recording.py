"""What a session's recorder may send, who it has to be, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.base.limits import SESSION_BATCH_BYTES_MAX, SESSION_BATCH_RECORDS_MAX
from pi_workflows.protocol.envelope import EventKind
from pi_workflows.protocol.sessions import SessionRecorded, SessionStanding
from tests.server.bench import run, server
from tests.server.coordinating import begin, claim, code, coordinate, members
from tests.server.recording import BINDING, Recorder, entry, event, recorder


def test_a_session_is_recorded(state_dir: Path) -> None:
    """Bound, filled, asked for, ended: each step says how far the capture has come."""

    async def body() -> None:
        async with server(state_dir) as bench:
            pi = await recorder(bench)
            nothing = SessionStanding.parse(await pi.do("status"))
            assert (nothing.bound, nothing.entry_count, nothing.last_event_seq) == (False, 0, 0)
            assert await pi.do("bind", binding=BINDING) == {"runId": "run-1", "action": "bind"}
            recorded = SessionRecorded.parse(await pi.do("entries", entries=[entry(1), entry(2)]))
            assert recorded.entry_sequence == 2
            assert await pi.do("events", events=[event(1)]) == {
                "runId": "run-1",
                "action": "events",
            }
            keyed = await pi.do("bind", binding=BINDING, attemptId="turn-1")
            assert keyed == {"runId": "run-1", "action": "bind", "attemptId": "turn-1"}
            standing = SessionStanding.parse(await pi.do("status"))
            assert (standing.bound, standing.entry_count, standing.event_count) == (True, 2, 1)
            assert await pi.complete(2, 1) == {"runId": "run-1", "action": "capture"}
            view = members((await pi.peer.ask("view.run.get", run_id="run-1")).receipt)
            session = members(view["session"])
            assert members(session["entryPage"])["total"] == 2

    run(body)


def test_what_leaves_a_receipt(state_dir: Path) -> None:
    """Binding and ending do, and are adopted; records are found again by their numbers."""

    async def body() -> None:
        async with server(state_dir) as bench:
            pi = await recorder(bench)
            before = bench.receipt_count()
            bound = [
                (await pi.ask("bind", {"binding": BINDING}, key="bind")).outcome for _ in range(2)
            ]
            assert bound == [Outcome.ACCEPTED, Outcome.ADOPTED]
            assert bench.receipt_count() == before + 1
            for action, record in (("entries", entry(1)), ("events", event(1))):
                payload: dict[str, Json] = {action: [record]}
                outcomes = [(await pi.ask(action, payload, key="again")).outcome for _ in range(2)]
                assert outcomes == [Outcome.ACCEPTED, Outcome.ADOPTED]
            gap = await pi.ask("events", {"events": [event(3)]})
            assert (gap.outcome, code(gap)) == (Outcome.REJECTED, "captureGap")
            differs = await pi.ask("entries", {"entries": [entry(1, "else")]})
            assert (differs.outcome, code(differs)) == (Outcome.CONFLICT, "captureDiffers")
            assert bench.receipt_count() == before + 1
            await pi.complete(1, 1)
            assert bench.receipt_count() == before + 2

    run(body)


def test_only_the_coordinator_records_its_own_runs(state_dir: Path) -> None:
    """Not a control connection, not another session's, not under an old epoch, not another run."""

    async def body() -> None:
        async with server(state_dir) as bench:
            pi = await recorder(bench)
            other = await bench.connect("other")
            foreign = await coordinate(other, "session-2")
            await begin(bench, other, "theirs", "session-2")
            receipts = bench.receipt_count()
            status: dict[str, Json] = {"action": "status"}
            bind: dict[str, Json] = {"action": "bind", "binding": BINDING}
            for peer, payload, run_id, expected in (
                (other, status, "theirs", "authorityDenied"),
                (other, {**bind, **claim(pi.epoch)}, "run-1", "notCoordinator"),
                (other, {**bind, **claim(foreign, "session-2")}, "run-1", "runOfAnotherSession"),
                (other, {**bind, **claim(foreign, "session-2")}, "theirs", "notCoordinator"),
                (pi.peer, {**bind, **claim(pi.epoch)}, "theirs", "runOfAnotherSession"),
                (pi.peer, {**bind, **claim(pi.epoch + 9)}, "run-1", "notCoordinator"),
            ):
                reply = await peer.ask("session.record", payload, run_id=run_id)
                assert (reply.outcome, code(reply)) == (Outcome.REJECTED, expected)
            assert bench.receipt_count() == receipts
            missing = await Recorder(pi.peer, pi.epoch, "missing").ask("status")
            assert missing.outcome is Outcome.NOT_FOUND
            successor = await bench.connect("successor")
            epoch = await coordinate(successor)
            assert code(await pi.ask("bind", {"binding": BINDING})) == "notCoordinator"
            await Recorder(successor, epoch).bind()

    run(body)


@pytest.mark.parametrize(
    ("payload", "expected", "field"),
    [
        ({"action": "events", "events": [event(1, type="text_delta")]},
         "sessionEventType", "events[0].type"),
        ({"action": "events", "events": [event(1), event(2, payload={"turnIndex": 1, "x": 1})]},
         "sessionEventPayload", "events[1].payload.x"),
        ({"action": "events", "events": [event(1, payload={})]},
         "sessionEventPayload", "events[0].payload.turnIndex"),
        ({"action": "events", "events": [event(0)]}, "payloadInvalid", "events[0].seq"),
        ({"action": "events", "events": [event(1, at=-1)]}, "payloadInvalid", "events[0].at"),
        ({"action": "events", "events": [event(1, text="secret")]},
         "payloadInvalid", "events[0].text"),
        ({"action": "events", "events": [event(1, attemptId="attempt-x")]},
         "attemptForeign", "events"),
        ({"action": "events", "events": [event(1, nodeId=None)]},
         "payloadInvalid", "events[0].nodeId"),
        ({"action": "entries", "entries": [{"seq": 1, "entry": {"text": "secret"}}]},
         "payloadInvalid", "entries[0].entry.id"),
        ({"action": "entries", "entries": [{"seq": 1, "entry": "secret"}]},
         "payloadInvalid", "entries[0].entry"),
        ({"action": "entries", "entries": [entry(1)] * (SESSION_BATCH_RECORDS_MAX + 1)},
         "batchTooLarge", "entries"),
        ({"action": "entries", "entries": [entry(1, "x" * SESSION_BATCH_BYTES_MAX), entry(2)]},
         "batchTooLarge", "entries"),
        ({"action": "bind", "binding": {**BINDING, "runId": "run-2"}},
         "payloadInvalid", "binding.runId"),
        ({"action": "bind", "binding": {**BINDING, "piSessionId": "session-2"}},
         "notCoordinator", "binding.piSessionId"),
        ({"action": "capture", "capture": {"status": "failed", "eventCount": 0, "entryCount": 0,
                                           "lastEventSeq": 0}}, "payloadInvalid", "capture"),
        ({"action": "entries"}, "payloadInvalid", "payload"),
        ({"action": "status", "attemptId": "x" * 257}, "payloadInvalid", "attemptId"),
    ],
)  # fmt: skip
def test_what_is_no_record_is_refused(
    state_dir: Path, payload: dict[str, Json], expected: str, field: str
) -> None:
    """By code and field, without a word of what was in it; and nothing is stored."""

    async def body() -> None:
        async with server(state_dir) as bench:
            pi = await recorder(bench)
            await pi.bind()
            reply = await pi.peer.ask(
                "session.record", {**payload, **claim(pi.epoch)}, run_id="run-1"
            )
            refusal = members(reply.receipt)
            assert (reply.outcome, refusal["code"], refusal["field"]) == (
                Outcome.REJECTED,
                expected,
                field,
            )
            assert "secret" not in canonical.encode(refusal).decode() + (reply.error or "")
            standing = SessionStanding.parse(await pi.do("status"))
            assert (standing.entry_count, standing.event_count) == (0, 0)

    run(body)


def test_a_large_record_comes_alone(state_dir: Path) -> None:
    """Larger than a batch may be, it is taken by itself."""

    async def body() -> None:
        async with server(state_dir) as bench:
            pi = await recorder(bench)
            await pi.bind()
            await pi.do("entries", entries=[entry(1, "x" * (2 * SESSION_BATCH_BYTES_MAX))])
            await pi.do("entries", entries=[entry(2)])
            assert (await pi.do("status"))["entryCount"] == 2

    run(body)


def test_a_recorder_goes_on_after_a_restart(state_dir: Path) -> None:
    """What was answered is there; the rest is sent again, whatever of it had arrived."""

    async def first() -> None:
        async with server(state_dir) as bench:
            pi = await recorder(bench)
            await pi.bind()
            await pi.send("events", [event(seq) for seq in range(1, 301)])
            await pi.do("entries", entries=[entry(1)])

    async def second() -> None:
        async with server(state_dir) as bench:
            peer = await bench.connect("pi")
            pi = Recorder(peer, await coordinate(peer))
            assert (await pi.ask("bind", {"binding": BINDING})).outcome is Outcome.ADOPTED
            standing = SessionStanding.parse(await pi.do("status"))
            assert (standing.entry_count, standing.last_event_seq) == (1, 300)
            await pi.do("events", events=[event(seq) for seq in range(290, 520)])
            await pi.do("entries", entries=[entry(1), entry(2)])
            await pi.complete(2, 519)

    run(first)
    run(second)


def test_who_watches_is_told_of_each_batch(state_dir: Path) -> None:
    """A watcher gets what was recorded as patches of its view."""

    async def body() -> None:
        async with server(state_dir) as bench:
            pi = await recorder(bench)
            await pi.bind()
            viewer = await bench.connect("viewer")
            await viewer.ask("view.run.watch", {"subscriptionId": "w"}, run_id="run-1")
            assert (await viewer.event()).event is EventKind.RUN_SNAPSHOT
            await pi.do("events", events=[event(1), event(2)])
            told = await viewer.event()
            assert told.event is EventKind.RUN_PATCH
            deltas = members(told.payload)["deltas"]
            assert isinstance(deltas, list)
            tail = [
                each["patch"]
                for each in map(members, deltas)
                if each["targetKey"] == "session:tail"
            ]
            (operations,) = tail
            assert isinstance(operations, list)
            items = members(operations[0])["value"]
            assert isinstance(items, list)
            assert [members(item)["seq"] for item in items] == [1, 2]

    run(body)
