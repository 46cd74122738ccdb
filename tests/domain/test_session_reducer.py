"""The replay of a session, folded in one go or from any checkpoint, and its bounds."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Corrupt
from pi_workflows.base.limits import (
    INLINE_BYTES_MAX,
    SESSION_BLOCKS_MAX,
    SESSION_MESSAGES_MAX,
    SESSION_TOOLS_MAX,
)
from pi_workflows.domain.session.reducer import ReplayState, SessionEvent, fold

NAMES = st.sampled_from(["a", "b", "c", None])
INDEX = st.integers(0, 2)


def assistant(kind: str) -> st.SearchStrategy[tuple[str, dict[str, Json]]]:
    """Return events of an assistant of one kind."""
    members: dict[str, st.SearchStrategy[Json]] = {"type": st.just(kind), "contentIndex": INDEX}
    return st.tuples(st.just("assistant_event"), st.fixed_dictionaries(members))


SHAPES = st.one_of(
    st.just(("turn_started", {"turnIndex": 0})),
    st.just(("message_started", {"role": "assistant"})),
    st.sampled_from(
        ["start", "text_start", "text_end", "thinking_start", "toolcall_start", "toolcall_end"]
    ).flatmap(assistant),
    st.just(("assistant_event", {"type": "done", "reason": "stop"})),
    st.just(("assistant_event", {"type": "error", "reason": "aborted"})),
    st.tuples(
        st.just("message_finished"),
        st.fixed_dictionaries(
            {"role": st.just("user"), "settled": st.booleans()},
            optional={"entryId": st.sampled_from(["e1", "e2"])},
        ),
    ),
    st.just(("tool_execution_started", {"toolName": "bash"})),
    st.tuples(
        st.just("tool_execution_finished"),
        st.fixed_dictionaries({"toolName": st.just("bash"), "isError": st.booleans()}),
    ),
    st.just(("turn_finished", {"turnIndex": 0, "toolCallIds": []})),
    st.just(("of_tomorrow", {"anything": [1]})),
    # What no server stores, but a damaged file may hold.
    st.just(("message_finished", {})),
    st.just(("assistant_event", {"type": 7, "contentIndex": "x"})),
)


def numbered(
    parts: Sequence[tuple[tuple[str, dict[str, Json]], str | None, str | None]],
) -> list[SessionEvent]:
    """Return events with numbers from 1."""
    return [
        SessionEvent(seq, kind, message, tool, payload)
        for seq, ((kind, payload), message, tool) in enumerate(parts, 1)
    ]


EVENTS = st.lists(st.tuples(SHAPES, NAMES, NAMES), max_size=40).map(numbered)


def event(
    seq: int, kind: str, message: str | None = None, tool: str | None = None, **payload: Json
) -> SessionEvent:
    """Return one event."""
    return SessionEvent(seq, kind, message, tool, payload)


@given(EVENTS, st.integers(0, 40))
def test_a_fold_may_go_on_from_any_checkpoint(events: list[SessionEvent], cut: int) -> None:
    """Of what is open, a fold from a stored checkpoint says what the fold of everything says."""
    whole = fold(ReplayState(), events)
    before = fold(ReplayState(), events[:cut])
    assert fold(before, events[cut:]) == whole
    stored = ReplayState.parse(before.reduced().blob().content)
    assert fold(stored, events[cut:]).reduced() == whole.reduced()
    # What is in a state already is skipped, however often it comes again.
    assert fold(whole, events) == whole


@pytest.mark.parametrize("seed", range(5))
def test_a_checkpoint_is_bounded(seed: int) -> None:
    """Whatever never ends, a checkpoint keeps so much of it; from there on all folds agree."""
    chance = random.Random(seed)  # noqa: S311 - which events, not secrets
    kinds: list[tuple[str, dict[str, Json]]] = [
        ("message_started", {"role": "assistant"}),
        ("tool_execution_started", {"toolName": "bash"}),
        ("assistant_event", {"type": "text_start"}),
        ("message_finished", {"role": "assistant", "settled": True, "entryId": "e"}),
        ("tool_execution_finished", {"toolName": "bash", "isError": False}),
    ]
    weights = [4, 8, 8, 1, 1]
    events: list[SessionEvent] = []
    for seq in range(1, 3_001):
        kind, payload = chance.choices(kinds, weights)[0]
        index: dict[str, Json] = {"contentIndex": chance.randrange(200)}
        members = {**payload, **index} if "type" in payload else payload
        names = chance.randrange(30), chance.randrange(120)
        events.append(SessionEvent(seq, kind, f"m{names[0]}", f"t{names[1]}", members))
    whole = fold(ReplayState(), events)
    state = ReplayState()
    for start in range(0, len(events), 256):
        state = fold(state, events[start : start + 256]).reduced()
        assert len(state.messages) <= SESSION_MESSAGES_MAX
        assert len(state.tools) <= SESSION_TOOLS_MAX
        assert all(len(message.blocks) <= SESSION_BLOCKS_MAX for message in state.messages)
    assert state == whole.reduced()
    assert {"messagesMany", "toolsMany"} <= {each.code for each in whole.diagnostics}


def test_a_message_has_so_many_blocks() -> None:
    """One more is left out, and told; one that starts again takes its own place."""
    events = [event(1, "message_started", "m", role="assistant")]
    for index in (*range(SESSION_BLOCKS_MAX), 0, SESSION_BLOCKS_MAX):
        events.append(
            event(len(events) + 1, "assistant_event", "m", type="text_start", contentIndex=index)
        )
    state = fold(ReplayState(), events)
    assert [len(message.blocks) for message in state.messages] == [SESSION_BLOCKS_MAX]
    assert [(each.code, each.seq) for each in state.diagnostics] == [("blocksMany", len(events))]


def test_a_message_lives_until_its_entry_is_known() -> None:
    """It streams blocks, is done, is settled by its entry, and is not in a checkpoint any more."""
    events = [
        event(1, "message_started", "m", role="assistant"),
        event(2, "assistant_event", "m", type="text_start", contentIndex=0),
        event(3, "assistant_event", "m", type="text_end", contentIndex=0),
        event(4, "assistant_event", "m", type="toolcall_start", contentIndex=1),
        event(5, "assistant_event", "m", type="toolcall_end", contentIndex=1, toolCallId="t",
              toolName="bash"),
        event(6, "assistant_event", "m", type="done", reason="toolUse"),
        event(7, "message_finished", "m", role="assistant", settled=True, entryId="e"),
    ]  # fmt: skip
    open_state = fold(ReplayState(), events[:6])
    assert open_state.document() == {
        "throughSeq": 6,
        "messages": [
            {
                "messageId": "m",
                "role": "assistant",
                "status": "finished",
                "blocks": [
                    {"contentIndex": 0, "type": "text", "status": "complete"},
                    {
                        "contentIndex": 1,
                        "type": "toolCall",
                        "status": "complete",
                        "toolCallId": "t",
                        "toolName": "bash",
                    },
                ],
            }
        ],
        "tools": [],
        "settledEntryIds": [],
        "diagnostics": [],
    }
    settled = fold(open_state, events[6:])
    (message,) = settled.messages
    assert (message.status, message.entry_id) == ("settled", "e")
    assert settled.settled_entry_ids == ("e",)
    assert open_state.reduced().messages == open_state.messages
    assert settled.reduced().document() == {
        "throughSeq": 7,
        "messages": [],
        "tools": [],
        "settledEntryIds": [],
        "diagnostics": [{"code": "earlierOutside", "message": "Earlier messages lie outside."}],
    }


def test_a_tool_outlives_its_message() -> None:
    """A tool that runs after its message was settled stays in a checkpoint until it ends."""
    events = [
        event(1, "message_started", "m", role="assistant"),
        event(2, "tool_execution_started", "m", "t", toolName="bash"),
        event(3, "message_finished", "m", role="assistant", settled=True, entryId="e"),
        event(4, "tool_execution_finished", "m", "t", toolName="bash", isError=True),
    ]
    running = fold(ReplayState(), events[:3]).reduced()
    assert [(tool.tool_call_id, tool.status) for tool in running.tools] == [("t", "running")]
    ended = fold(running, events[3:])
    assert [tool.status for tool in ended.tools] == ["failed"]
    assert ended.reduced().tools == ()


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (event(3, "turn_started"), "gap"),
        (event(1, "message_started"), "messageUnnamed"),
        (event(1, "assistant_event", "m", type="done"), "messageUnknown"),
        (event(1, "message_finished", "m", settled=True, entryId="e"), "messageUnknown"),
        (event(1, "tool_execution_started", "m", toolName="bash"), "toolUnnamed"),
        (event(1, "tool_execution_started", None, "t", toolName="bash"), "toolUnnamed"),
        (event(1, "tool_execution_finished", "m", "t", isError=False), "toolUnknown"),
    ],
)
def test_what_is_out_of_order_is_told(found: SessionEvent, code: str) -> None:
    """An event that does not fit is a diagnostic and no failure, and changes nothing else."""
    state = fold(ReplayState(), [found])
    assert [(each.code, each.seq) for each in state.diagnostics] == [(code, found.seq)]
    assert (state.through_seq, state.messages, state.tools) == (found.seq, (), ())


def test_a_block_that_never_started_is_told() -> None:
    """The end of an unknown block leaves its message as it is."""
    begun = event(1, "message_started", "m", role="assistant")
    ended = event(2, "assistant_event", "m", type="text_end", contentIndex=4)
    state = fold(ReplayState(), [begun, ended])
    assert [each.code for each in state.diagnostics] == ["blockUnknown"]
    assert state.messages == fold(ReplayState(), [begun]).messages


def test_a_settled_message_without_its_entry_is_told() -> None:
    """It cannot be shown by an entry, so that it stays what it was, unsettled."""
    events = [
        event(1, "message_started", "m", role="user"),
        event(2, "message_finished", "m", role="user", settled=True),
    ]
    state = fold(ReplayState(), events)
    assert [each.code for each in state.diagnostics] == ["entryMissing"]
    assert [message.status for message in state.messages] == ["unsettled"]


def test_a_stored_state_that_is_none_is_damage() -> None:
    """Bytes that are no state are not taken for an empty one."""
    for content in (b"[]", b"{", b'{"throughSeq":"1"}'):
        with pytest.raises(Corrupt):
            ReplayState.parse(content)
    assert len(ReplayState().reduced().blob().content) < INLINE_BYTES_MAX
