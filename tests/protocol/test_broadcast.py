"""An event that is encoded once has, for each subscription, the bytes of its own encoding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base import canonical
from pi_workflows.base.errors import LimitExceeded
from pi_workflows.base.limits import FRAME_BYTES_MAX
from pi_workflows.protocol import envelope
from pi_workflows.protocol.broadcast import Broadcast
from pi_workflows.protocol.envelope import Event, EventKind

_IDENTITIES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=64)


@given(
    event=st.sampled_from(EventKind),
    names=st.lists(_IDENTITIES, min_size=1, max_size=4),
    run_id=st.none() | _IDENTITIES,
    revision=st.integers(0, 2**53 - 1),
    text=st.text(st.characters(codec="utf-8")),
)
def test_a_frame_is_that_of_its_event(
    event: EventKind, names: list[str], run_id: str | None, revision: int, text: str
) -> None:
    """Whatever the identities hold, what is spliced equals what is written in one piece."""
    payload = canonical.fragment(canonical.encode({"text": text, "subscriptionId": "another"}))
    news = Broadcast.of(event, payload, revision=revision, run_id=run_id)
    assert news.revision == revision
    for name in (*names, *names):
        whole = Event(
            subscription_id=name, event=event, payload=payload, revision=revision, run_id=run_id
        )
        assert news.frame(name) == envelope.encode(whole)


def test_equal_names_share_their_bytes() -> None:
    """A hundred clients that named their subscription alike are sent one object."""
    news = Broadcast.of(EventKind.RUN_PATCH, {}, revision=1, run_id="run-1")
    frames = [news.frame("watched") for _ in range(100)]
    assert len(set(map(id, frames))) == 1


def test_a_frame_keeps_to_its_bound() -> None:
    """The name counts too: one byte more than fits is refused, and only for that subscription."""
    short = len(Broadcast.of(EventKind.RUNS, "", revision=1).frame("s"))
    news = Broadcast.of(EventKind.RUNS, "x" * (FRAME_BYTES_MAX - short), revision=1)
    assert len(news.frame("s")) == FRAME_BYTES_MAX
    with pytest.raises(LimitExceeded) as refused:
        news.frame("ss")
    assert refused.value.reason_code == "frameTooLarge"
    assert len(news.frame("t")) == FRAME_BYTES_MAX
