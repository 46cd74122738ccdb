"""Real Pi sessions, and the events that a recorder would have seen while they were held.

The files are nobody's of this repository: `PI_SESSION_CORPUS` says where they lie.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json

CORPUS = os.environ.get("PI_SESSION_CORPUS")
NAMES = ("compaction-v3.jsonl", "themes-v3.jsonl")
needs_corpus = pytest.mark.skipif(
    CORPUS is None, reason="PI_SESSION_CORPUS names no folder with real Pi sessions"
)

Members = dict[str, Json]
_BLOCKS = {"text": "text", "thinking": "thinking", "toolCall": "toolcall"}
_DONE = {"stop": "stop", "toolUse": "toolUse", "length": "length"}
_START_MS = 1_763_681_581_544


def session_entries(name: str) -> list[Members]:
    """Return the entries of a file, in order, without its header."""
    assert CORPUS is not None
    lines = (Path(CORPUS) / name).read_bytes().splitlines()
    return [members(canonical.decode(line)) for line in lines[1:]]


def members(value: Json) -> Members:
    """Return a JSON object's members."""
    assert isinstance(value, dict), value
    return value


def text(value: Json) -> str:
    """Return a text."""
    assert isinstance(value, str), value
    return value


class _Recorder:
    """What a recorder sees while a session is held, message by message."""

    def __init__(self) -> None:
        self.records: list[Members] = []
        self._turn = 0
        self._owners: dict[str, str] = {}
        self._tools: dict[str, str] = {}

    def see(self, entry: Members) -> None:
        """See a message begin, stream and settle; what is no message has no events."""
        if entry["type"] != "message":
            return
        message, name = members(entry["message"]), f"message-{text(entry['id'])}"
        role = text(message["role"])
        if role == "toolResult":
            self._tool_ended(message)
        if role == "assistant":
            self._turn += 1
            self._add("turn_started", {"turnIndex": self._turn})
        self._add("message_started", {"role": role}, messageId=name)
        if role == "assistant":
            self._streamed(message, name)
        self._add(
            "message_finished",
            {"role": role, "settled": True, "entryId": entry["id"]},
            messageId=name,
        )
        if role == "assistant":
            self._called(message, name)

    def _streamed(self, message: Members, name: str) -> None:
        """See the blocks of an assistant's message."""
        self._assistant(name, type="start")
        for index, block in enumerate(map(members, _listed(message["content"]))):
            kind = _BLOCKS[text(block["type"])]
            self._assistant(name, type=f"{kind}_start", contentIndex=index)
            ended: Members = {"type": f"{kind}_end", "contentIndex": index}
            if kind == "toolcall":
                ended |= {"toolCallId": block["id"], "toolName": block["name"]}
            self._assistant(name, **ended)
        stop = text(message["stopReason"])
        if stop in _DONE:
            self._assistant(name, type="done", reason=_DONE[stop])
        else:
            self._assistant(name, type="error", reason=stop)

    def _called(self, message: Members, name: str) -> None:
        """See the tools that a message called begin, and the turn end."""
        calls = [
            each for each in map(members, _listed(message["content"])) if each["type"] == "toolCall"
        ]
        for call in calls:
            key = text(call["id"])
            self._owners[key], self._tools[key] = name, text(call["name"])
            self._add(
                "tool_execution_started",
                {"toolName": call["name"]},
                messageId=name,
                toolCallId=key,
            )
        names: list[Json] = [call["id"] for call in calls]
        self._add(
            "turn_finished", {"turnIndex": self._turn, "messageId": name, "toolCallIds": names}
        )

    def _tool_ended(self, message: Members) -> None:
        """See a tool end."""
        key = text(message["toolCallId"])
        self._add(
            "tool_execution_finished",
            {"toolName": message["toolName"], "isError": message["isError"]},
            messageId=self._owners.get(key, "unknown"),
            toolCallId=key,
        )

    def _assistant(self, name: str, **payload: Json) -> None:
        """Add an event of an assistant."""
        self._add("assistant_event", payload, messageId=name)

    def _add(self, kind: str, payload: Members, **names: Json) -> None:
        """Add an event."""
        seq = len(self.records) + 1
        self.records.append(
            {
                "seq": seq,
                "at": _START_MS + 25 * seq,
                "turnId": f"turn-{self._turn}",
                "type": kind,
                "payload": payload,
                **names,
            }
        )


def session_events(entries: list[Members]) -> list[Members]:
    """Return the records of what a recorder would have seen of these entries."""
    recorder = _Recorder()
    for entry in entries:
        recorder.see(entry)
    return recorder.records


def spoken(entries: list[Members]) -> Iterator[Json]:
    """Yield what was said and done: every message, tool results among them."""
    for entry in entries:
        if entry["type"] == "message":
            yield entry["message"]


def _listed(value: Json) -> list[Json]:
    """Return an array; content that is one text has no blocks."""
    return value if isinstance(value, list) else []
