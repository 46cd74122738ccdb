"""Two real Pi sessions go in through the socket and come out as they were."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.domain.session.checkpoints import state_at
from pi_workflows.domain.session.reducer import ReplayState, SessionEvent, fold
from tests.server.bench import Bench, Peer, run, server
from tests.server.corpus import (
    NAMES,
    Members,
    members,
    needs_corpus,
    session_entries,
    session_events,
    spoken,
    text,
)
from tests.server.recording import Recorder, recorder


@needs_corpus
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_real_session_is_replayed(state_dir: Path, name: str) -> None:
    """Messages and tool results are the file's; pages and checkpoints those of a straight fold."""
    entries = session_entries(name)
    events = session_events(entries)
    assert len(entries) > 1_000
    assert len(events) > 4_000

    async def body() -> None:
        async with server(state_dir) as bench:
            pi = await recorder(bench)
            await pi.bind()
            # As it was held: a message's entry is settled before its end is told.
            await _record(pi, entries, events)
            await pi.complete(len(entries), len(events))
            stored = await _pages(pi.peer, "session_entries")
            found = [await _resolved(pi.peer, item["entry"]) for item in _items(stored)]
            assert found == entries
            assert list(spoken(found)) == list(spoken(entries))
            await _check_events(bench, pi.peer, events)
            auditor = await bench.connect("auditor")
            verified = members((await auditor.ask("state.verify")).receipt)
            assert (verified["valid"], verified["violations"]) == (True, [])

    run(body, mock=False)


async def _record(pi: Recorder, entries: list[Members], events: list[Members]) -> None:
    """Record both journals, some of each in turn."""
    steps = 40
    numbered: list[Members] = [{"seq": seq, "entry": each} for seq, each in enumerate(entries, 1)]
    for step in range(steps):
        for action, records in (("entries", numbered), ("events", events)):
            first, last = (len(records) * edge // steps for edge in (step, step + 1))
            await pi.send(action, records[first:last])


async def _pages(peer: Peer, kind: str) -> list[Members]:
    """Return all pages of a kind, from the first item to the last."""
    found: list[Members] = []
    following = 0
    while True:
        payload: Json = {"kind": kind, "cursor": following}
        page = members((await peer.ask("view.page", payload, run_id="run-1")).receipt)
        start, total, items = page["start"], page["total"], page["items"]
        assert isinstance(start, int)
        assert isinstance(total, int)
        assert isinstance(items, list)
        assert start <= following < start + len(items)
        page["items"] = items[following - start :]
        found.append(page)
        following = start + len(items)
        if following == total:
            return found


def _items(pages: list[Members]) -> list[Members]:
    """Return the items of pages."""
    found: list[Members] = []
    for page in pages:
        items = page["items"]
        assert isinstance(items, list)
        found += map(members, items)
    return found


async def _resolved(peer: Peer, value: Json) -> Members:
    """Return an entry, fetched where a reference stands for it."""
    entry = members(value)
    if "$artifact" not in entry:
        return entry
    path = members(entry["$artifact"])["path"]
    content = bytearray()
    is_complete: Json = False
    while not is_complete:
        payload: Json = {"path": path, "offset": len(content)}
        chunk = members((await peer.ask("view.content", payload, run_id="run-1")).receipt)
        content += base64.b64decode(text(chunk["data"]))
        is_complete = chunk["complete"]
    return members(canonical.decode(bytes(content)))


async def _check_events(bench: Bench, peer: Peer, events: list[Members]) -> None:
    """Hold every event, every page's state and every checkpoint to the events that were sent."""
    assert _items(await _pages(peer, "session_events")) == events
    total = len(events)
    seen: dict[int, ReplayState] = {}
    for cursor in range(0, total, 97):
        payload: Json = {"kind": "session_events", "cursor": cursor}
        page = members((await peer.ask("view.page", payload, run_id="run-1")).receipt)
        start = page["start"]
        assert isinstance(start, int)
        assert (page["replayCheckpoint"] is None) == (start == 0)
        if start:
            seen[start] = ReplayState.parse(canonical.encode(page["replayCheckpoint"])).reduced()
    with bench.parts.services.store.snapshot() as read:
        boundaries = {seq: state_at(read, "run-1", seq) for seq in range(256, total + 1, 256)}
    assert {**seen, **boundaries} == _straight(events, {*seen, *boundaries})
    view = members((await peer.ask("view.run.get", run_id="run-1")).receipt)
    session = members(view["session"])
    assert session["integrity"] == {"status": "valid", "diagnostics": []}
    assert members(session["capture"])["lastEventSeq"] == total


def _straight(events: list[Members], places: set[int]) -> dict[int, ReplayState]:
    """Return what is open at each place, folded from the first event on without a checkpoint."""
    state, found = ReplayState(), dict[int, ReplayState]()
    for place in sorted({*places, len(events)}):
        state = fold(
            state, (_event(seq, events[seq - 1]) for seq in range(state.through_seq + 1, place + 1))
        )
        found[place] = state.reduced()
    assert state.diagnostics == ()
    return {place: found[place] for place in places}


def _event(seq: int, record: Members) -> SessionEvent:
    """Return a record as a fold takes it."""
    message, call = record.get("messageId"), record.get("toolCallId")
    return SessionEvent(
        seq,
        text(record["type"]),
        text(message) if message is not None else None,
        text(call) if call is not None else None,
        members(record["payload"]),
    )
