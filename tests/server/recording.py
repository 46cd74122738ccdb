"""A recorder over the socket: it coordinates a session and records it for a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Outcome
from pi_workflows.base.limits import SESSION_BATCH_BYTES_MAX, SESSION_BATCH_RECORDS_MAX
from pi_workflows.protocol.envelope import Response
from tests.server.bench import Bench, Peer
from tests.server.coordinating import begin, claim, coordinate, members

BINDING: dict[str, Json] = {"piSessionId": "session-1", "cwd": "/project"}


@dataclass
class Recorder:
    """A recorder.

    Attributes:
        peer: Its connection.
        epoch: With which it speaks for the session.
        run_id: The run that it records.
    """

    peer: Peer
    epoch: int
    run_id: str = "run-1"

    async def ask(
        self, action: str, payload: dict[str, Json] | None = None, *, key: str | None = None
    ) -> Response:
        """Take one step; `key` is the request's idempotency key."""
        return await self.peer.ask(
            "session.record",
            {"action": action, **(payload or {}), **claim(self.epoch)},
            run_id=self.run_id,
            key=key,
        )

    async def do(self, action: str, **payload: Json) -> dict[str, Json]:
        """Take a step that must be accepted, and return its receipt."""
        reply = await self.ask(action, payload)
        assert reply.outcome is Outcome.ACCEPTED, reply
        return members(reply.receipt)

    async def bind(self, **payload: Json) -> None:
        """Begin to record."""
        await self.do("bind", binding=BINDING, **payload)

    async def complete(self, entry_count: int, event_count: int) -> dict[str, Json]:
        """End the recording."""
        return await self.do(
            "capture",
            capture={
                "schema": "pi-workflows.session-capture.v1",
                "eventSchema": "pi-workflows.session-event.v1",
                "status": "complete",
                "eventCount": event_count,
                "entryCount": entry_count,
                "lastEventSeq": event_count,
            },
        )

    async def send(self, action: str, records: Sequence[dict[str, Json]]) -> None:
        """Send records in batches as large as they may be."""
        for batch in batches(records):
            listed: list[Json] = [*batch]
            await self.do(action, **{action: listed})


async def recorder(bench: Bench, run_id: str = "run-1") -> Recorder:
    """Connect a recorder, and start a run of its session."""
    peer = await bench.connect("pi")
    epoch = await coordinate(peer)
    reply = await begin(bench, peer, run_id)
    assert reply.outcome is Outcome.ACCEPTED, reply
    return Recorder(peer, epoch, run_id)


def batches(records: Sequence[dict[str, Json]]) -> Iterator[list[dict[str, Json]]]:
    """Yield records in groups that one request may carry."""
    batch: list[dict[str, Json]] = []
    size = 0
    for record in records:
        own = len(canonical.encode(record))
        if batch and (
            len(batch) == SESSION_BATCH_RECORDS_MAX or size + own > SESSION_BATCH_BYTES_MAX
        ):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += own
    if batch:
        yield batch


def entry(seq: int, text: str = "hello") -> dict[str, Json]:
    """Return an entry's record."""
    return {"seq": seq, "entry": {"type": "message", "id": f"entry-{seq}", "text": text}}


def event(seq: int, **members: Json) -> dict[str, Json]:
    """Return an event's record."""
    return {
        "seq": seq,
        "at": 1_700_000_000_000 + seq,
        "type": "turn_started",
        "payload": {"turnIndex": seq},
        **members,
    }
