"""The replay of a session: what was open after each of its events, folded from their order alone.

The client protocol, section 11. What a message said stands in its settled entry; from there on the
entry is shown. So the state that a checkpoint keeps is what is still open: the fold of everything,
reduced to that, is the fold that goes on from any checkpoint, reduced to that. For this an event
changes open messages and running tools only, and a message that starts again is a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Corrupt
from pi_workflows.base.limits import (
    SESSION_BLOCKS_MAX,
    SESSION_MESSAGES_MAX,
    SESSION_TOOLS_MAX,
)

MessageStatus: TypeAlias = Literal["streaming", "finished", "error", "settled", "unsettled"]
ToolStatus: TypeAlias = Literal["running", "finished", "failed"]
BlockType: TypeAlias = Literal["text", "thinking", "toolCall"]


class _Model(BaseModel):
    """A frozen part of a state, camelCase as documents are."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, alias_generator=to_camel, validate_by_name=True
    )


class Block(_Model):
    """A part of an assistant's message."""

    content_index: int
    type: BlockType
    status: Literal["streaming", "complete"] = "streaming"
    tool_call_id: str | None = None
    tool_name: str | None = None


class Message(_Model):
    """A message: open until it is settled or known to have no entry."""

    message_id: str
    role: str
    status: MessageStatus = "streaming"
    blocks: tuple[Block, ...] = ()
    entry_id: str | None = None


class Tool(_Model):
    """A tool's execution."""

    tool_call_id: str
    message_id: str
    tool_name: str
    status: ToolStatus = "running"


class Diagnostic(_Model):
    """Something that the events do not say as they should. `seq` is the event that showed it."""

    code: str
    message: str
    seq: int | None = None


class ReplayState(_Model):
    """What a session looked like after an event.

    Attributes:
        through_seq: The run-wide number of the last event in it.
        messages: In the order in which they started.
        tools: As above.
        settled_entry_ids: Entries that messages became, in order.
        diagnostics: In order.
    """

    through_seq: int = 0
    messages: tuple[Message, ...] = ()
    tools: tuple[Tool, ...] = ()
    settled_entry_ids: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()

    @classmethod
    def parse(cls, content: bytes) -> ReplayState:
        """Read a stored state. Raises Corrupt when the bytes are none."""
        try:
            return cls.model_validate_json(content)
        except ValueError as error:
            raise Corrupt("A stored replay state is not one.", code="checkpoints") from error

    def document(self) -> dict[str, Json]:
        """Return the state as documents have it."""
        found: dict[str, Json] = self.model_dump(mode="json", by_alias=True, exclude_none=True)
        return found

    def blob(self) -> Blob:
        """Return the stored form."""
        return Blob.json(self.document())

    def reduced(self) -> ReplayState:
        """Return what is still open of it, which is what a checkpoint keeps: bounded."""
        return ReplayState(
            through_seq=self.through_seq,
            messages=tuple(message for message in self.messages if message.status in _OPEN),
            tools=tuple(tool for tool in self.tools if tool.status == "running"),
            diagnostics=(_OUTSIDE,),
        )


@dataclass(frozen=True, slots=True)
class SessionEvent:
    """An event as a fold takes it.

    Attributes:
        seq: Its run-wide number.
        type: Its kind; one that is unknown changes nothing.
        message_id: The message that it is about.
        tool_call_id: The tool call.
        payload: Its payload.
    """

    seq: int
    type: str
    message_id: str | None
    tool_call_id: str | None
    payload: Mapping[str, Json]


def fold(state: ReplayState, events: Iterable[SessionEvent]) -> ReplayState:
    """Return a state after more events.

    Args:
        state: What was before.
        events: In the order of their numbers; those that are in the state already are skipped.

    Returns:
        The state through the last of them.
    """
    folding = _Folding(state)
    for event in events:
        folding.take(event)
    return folding.state()


_OPEN: Final = frozenset({"streaming", "finished", "error"})
_OUTSIDE: Final = Diagnostic(code="earlierOutside", message="Earlier messages lie outside.")
_BLOCKS: Final[Mapping[str, BlockType]] = {
    "text": "text",
    "thinking": "thinking",
    "toolcall": "toolCall",
}


class _Folding:
    """A fold under way. Of a message or a tool that is not open no event changes anything."""

    def __init__(self, state: ReplayState) -> None:
        """Go on from a state."""
        self._seq = state.through_seq
        self._messages = {message.message_id: message for message in state.messages}
        self._open = dict.fromkeys(m.message_id for m in state.messages if m.status in _OPEN)
        self._tools = {tool.tool_call_id: tool for tool in state.tools}
        self._running = dict.fromkeys(t.tool_call_id for t in state.tools if t.status == "running")
        self._settled = [*state.settled_entry_ids]
        self._diagnostics = [*state.diagnostics]

    def state(self) -> ReplayState:
        """Return the state that was reached."""
        return ReplayState(
            through_seq=self._seq,
            messages=tuple(self._messages.values()),
            tools=tuple(self._tools.values()),
            settled_entry_ids=tuple(self._settled),
            diagnostics=tuple(self._diagnostics),
        )

    def take(self, event: SessionEvent) -> None:
        """Take the next event."""
        if event.seq <= self._seq:
            return
        if event.seq > self._seq + 1:
            self._tell(event, "gap", f"Events {self._seq + 1} to {event.seq - 1} are missing.")
        self._seq = event.seq
        change = _CHANGES.get(event.type)
        if change is not None:
            change(self, event)

    def message_started(self, event: SessionEvent) -> None:
        """Open a message."""
        key = event.message_id
        if key is None:
            self._tell(event, "messageUnnamed", "A message without a name started.")
        elif key not in self._open:
            self._messages.pop(key, None)
            self._messages[key] = Message(message_id=key, role=_text(event, "role"))
            self._open[key] = None
            if len(self._open) > SESSION_MESSAGES_MAX:
                oldest = next(iter(self._open))
                del self._open[oldest], self._messages[oldest]
                self._tell(event, "messagesMany", "Too many messages are open; one is left out.")

    def assistant_event(self, event: SessionEvent) -> None:
        """Change what is known of an open message of the assistant."""
        message = self._message(event)
        if message is None:
            return
        kind = _text(event, "type")
        if kind in ("done", "error"):
            status: MessageStatus = "finished" if kind == "done" else "error"
            self._put(message.model_copy(update={"status": status}))
        block_type = _BLOCKS.get(kind.partition("_")[0])
        index = event.payload.get("contentIndex")
        if block_type is None or not isinstance(index, int):
            return
        if kind.endswith("_start"):
            self._block_started(event, message, Block(content_index=index, type=block_type))
        else:
            self._block_ended(event, message, index)

    def message_finished(self, event: SessionEvent) -> None:
        """Close a message: from here on its entry is shown."""
        message = self._message(event)
        if message is None:
            return
        is_settled, entry_id = event.payload.get("settled"), event.payload.get("entryId")
        changes: dict[str, object] = {"status": "unsettled"}
        if is_settled is True and isinstance(entry_id, str):
            changes = {"status": "settled", "entry_id": entry_id}
            self._settled.append(entry_id)
        elif is_settled is True:
            self._tell(event, "entryMissing", "A settled message names no entry.")
        self._put(message.model_copy(update=changes))
        del self._open[message.message_id]

    def tool_started(self, event: SessionEvent) -> None:
        """Begin a tool's execution."""
        key, message_id = event.tool_call_id, event.message_id
        if key is None or message_id is None:
            self._tell(event, "toolUnnamed", "A tool started without its call or its message.")
        elif key not in self._running:
            self._tools.pop(key, None)
            self._tools[key] = Tool(
                tool_call_id=key, message_id=message_id, tool_name=_text(event, "toolName")
            )
            self._running[key] = None
            if len(self._running) > SESSION_TOOLS_MAX:
                oldest = next(iter(self._running))
                del self._running[oldest], self._tools[oldest]
                self._tell(event, "toolsMany", "Too many tools are running; one is left out.")

    def tool_finished(self, event: SessionEvent) -> None:
        """End a tool's execution."""
        key = event.tool_call_id
        if key is None or key not in self._running:
            self._tell(event, "toolUnknown", "A tool ended that is not running.")
            return
        is_error = event.payload.get("isError") is True
        status: ToolStatus = "failed" if is_error else "finished"
        self._tools[key] = self._tools[key].model_copy(update={"status": status})
        del self._running[key]

    def _block_started(self, event: SessionEvent, message: Message, block: Block) -> None:
        """Put a block into a message, in the place of one with the same index."""
        others = tuple(b for b in message.blocks if b.content_index != block.content_index)
        if len(others) >= SESSION_BLOCKS_MAX:
            self._tell(event, "blocksMany", "A message has too many blocks; one is left out.")
        else:
            self._put(message.model_copy(update={"blocks": (*others, block)}))

    def _block_ended(self, event: SessionEvent, message: Message, index: int) -> None:
        """Mark a block complete; that of a tool call learns which call it is."""
        found = next((b for b in message.blocks if b.content_index == index), None)
        if found is None:
            self._tell(event, "blockUnknown", "A block ended that never started.")
            return
        changes: dict[str, object] = {"status": "complete"}
        for name, key in (("tool_call_id", "toolCallId"), ("tool_name", "toolName")):
            given = event.payload.get(key)
            if isinstance(given, str):
                changes[name] = given
        ended = found.model_copy(update=changes)
        blocks = tuple(ended if block is found else block for block in message.blocks)
        self._put(message.model_copy(update={"blocks": blocks}))

    def _message(self, event: SessionEvent) -> Message | None:
        """Return the open message of an event, None when there is none."""
        key = event.message_id
        if key is not None and key in self._open:
            return self._messages[key]
        self._tell(event, "messageUnknown", "An event is about a message that is not open.")
        return None

    def _put(self, message: Message) -> None:
        """Keep what a message has become."""
        self._messages[message.message_id] = message

    def _tell(self, event: SessionEvent, code: str, message: str) -> None:
        """Note what an event showed."""
        self._diagnostics.append(Diagnostic(code=code, message=message, seq=event.seq))


def _text(event: SessionEvent, name: str) -> str:
    """Return a text member of a payload, empty where it has none."""
    value = event.payload.get(name)
    return value if isinstance(value, str) else ""


_CHANGES: Final[Mapping[str, Callable[[_Folding, SessionEvent], None]]] = {
    "message_started": _Folding.message_started,
    "assistant_event": _Folding.assistant_event,
    "message_finished": _Folding.message_finished,
    "tool_execution_started": _Folding.tool_started,
    "tool_execution_finished": _Folding.tool_finished,
}
