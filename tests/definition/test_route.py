"""Where a run goes when a node has settled."""

from __future__ import annotations

from typing import Literal, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base.canonical import Json
from pi_workflows.definition.graph import snapshot_problems
from pi_workflows.definition.retry import retry_delay_ms
from pi_workflows.definition.route import APPROVAL_STALE, End, Next, Route, Unroutable, route
from pi_workflows.definition.selector import NodeOutcome
from pi_workflows.definition.snapshot import Edge, Node, RetryPolicy, Snapshot

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=8,
)
RETRY = RetryPolicy(max_attempts=2, on=("failed",), delay_ms=0, backoff=1.0)
OUTCOMES: tuple[NodeOutcome, ...] = ("ok", "failed", "timed_out", "cancelled")


def defined(*edges: Edge) -> Snapshot:
    """A definition with the nodes a, b and c, whose edges are not all needed to be sound."""
    nodes = {name: Node(type="compute", timeout_ms=0) for name in "abc"}
    return Snapshot(name="x", start_at="a", max_steps=5, nodes=nodes, edges=edges)


def unread() -> NoReturn:
    """An output that must not be read."""
    raise AssertionError


def switch(on: str, **cases: str) -> Snapshot:
    """A definition whose node a has this switch."""
    return defined(Edge(source="a", on=on, cases=cases))


def late(delay: int | str) -> Snapshot:
    """A definition whose node a leads on after some time."""
    return defined(Edge(source="a", to="b", delay=delay))


@pytest.mark.parametrize(
    ("snapshot", "outcome", "output", "expected"),
    [
        (defined(), "ok", None, End("completed")),
        (defined(), "failed", None, End("failed")),
        (defined(), "timed_out", None, End("timed_out")),
        (defined(), "cancelled", None, End("cancelled")),
        (defined(Edge(source="a", to="b")), "ok", None, Next("b")),
        (defined(Edge(source="a", to="b")), "failed", None, End("failed")),
        (switch("$.r", x="b", y="c"), "ok", {"r": "y"}, Next("c")),
        (late(7), "ok", None, Next("b", (), 7)),
        (late("$.m"), "ok", {"m": 9}, Next("b", (), 9)),
        (late("$.m"), "ok", {"m": 0.0}, Next("b", (), 0)),
        (switch("$output.r", x="b"), "ok", {"r": "x"}, Next("b")),
        (switch("$.r.s", x="b"), "ok", {"r": {"s": "x"}}, Next("b")),
        (switch("$", x="b"), "ok", "x", Next("b")),
        (switch("$.r", true="b"), "ok", {"r": True}, Next("b")),
        (switch("$.r", true="b"), "ok", {"r": "true"}, Next("b")),
        (switch("$.r", null="b"), "ok", {"r": None}, Next("b")),
        (defined(Edge(source="a", on="$.r", cases={"1": "b"})), "ok", {"r": 1.0}, Next("b")),
        (switch("$.r", x="b"), "failed", None, End("failed")),
        (switch("$result.outcome", ok="b", failed="c"), "ok", None, Next("b")),
        (switch("$result.outcome", ok="b", failed="c"), "failed", None, Next("c")),
        (switch("$result.outcome", timed_out="c"), "timed_out", None, Next("c")),
        (switch("$result.outcome", ok="b"), "cancelled", None, End("cancelled")),
    ],
)
def test_route_table(
    snapshot: Snapshot, outcome: NodeOutcome, output: Json, expected: Route
) -> None:
    """A node's outcome, output and edge choose the next node or the end of the run."""
    assert route(snapshot, "a", outcome, lambda: output) == expected


@pytest.mark.parametrize(
    ("snapshot", "outcome", "output", "code", "shown"),
    [
        (switch("$.r", x="b", y="c"), "ok", {"r": "z"}, "noCase", "a: $.r is 'z', which is no"),
        (switch("$.r", x="b"), "ok", {"r": "n" * 500}, "noCase", "…"),
        (switch("$.r", x="b"), "ok", {"s": 1}, "noValue", "a: the output has no value at $.r"),
        (switch("$.r.s", x="b"), "ok", {"r": [1]}, "noValue", "$.r.s"),
        (switch("$.r", x="b"), "ok", {"r": [1]}, "notScalar", "a list"),
        (switch("$.r", x="b"), "ok", {"r": {}}, "notScalar", "an object"),
        (switch("$result.outcome", ok="b"), "failed", None, "noCase", "'failed'"),
        (late("$.m"), "ok", {}, "noValue", "a: the output has no value at $.m"),
        (late("$.m"), "ok", {"m": -1}, "delayInvalid", "a: the delay at $.m is -1; use milli"),
        (late("$.m"), "ok", {"m": 1.5}, "delayInvalid", "1.5"),
        (late("$.m"), "ok", {"m": True}, "delayInvalid", "True"),
        (late("$.m"), "ok", {"m": "9"}, "delayInvalid", "'9'"),
        (late("$.m"), "ok", {"m": 604_800_001}, "delayInvalid", "604800001"),
    ],
)
def test_unroutable_says_what_it_found(
    snapshot: Snapshot, outcome: NodeOutcome, output: Json, code: str, shown: str
) -> None:
    """A switch that cannot choose names its node, its path and the bounded value."""
    found = route(snapshot, "a", outcome, lambda: output)
    assert isinstance(found, Unroutable)
    assert found.code == code
    assert shown in found.message
    assert len(found.message) < 300


@pytest.mark.parametrize("outcome", ["failed", "timed_out", "cancelled"])
def test_only_an_ok_output_is_read(outcome: Literal["failed", "timed_out", "cancelled"]) -> None:
    """The output of a node that did not end well is never looked at."""
    for snapshot in (
        defined(),
        switch("$.r", x="b"),
        switch("$result.outcome", failed="b", timed_out="c"),
    ):
        route(snapshot, "a", outcome, unread)


def test_a_plain_edge_reads_no_output() -> None:
    """Only a switch on the output costs reading it."""
    assert route(defined(Edge(source="a", to="b")), "a", "ok", unread) == Next("b")
    assert route(switch("$result.outcome", ok="c"), "a", "ok", unread) == Next("c")


@pytest.mark.slow
@given(
    on=st.sampled_from(["$", "$.a", "$.a.b", "$output.c", "$result.outcome"]),
    cases=st.dictionaries(
        st.sampled_from(["ok", "failed", "timed_out"])
        | st.text(max_size=3)
        | st.just("line\nline"),
        st.sampled_from("abc"),
        min_size=1,
        max_size=4,
    ),
    outcome=st.sampled_from(OUTCOMES),
    output=JSON,
)
def test_every_settled_node_has_exactly_one_answer(
    on: str, cases: dict[str, str], outcome: NodeOutcome, output: Json
) -> None:
    """Whatever a sound switch meets, the answer is a known node, an end, or a reason."""
    snapshot = defined(Edge(source="a", on=on, cases=cases))
    if any(problem.code.startswith("switch") for problem in snapshot_problems(snapshot)):
        return
    found = route(snapshot, "a", outcome, lambda: output)
    assert found == route(snapshot, "a", outcome, lambda: output)
    match found:
        case Next(path):
            assert path in cases.values()
            assert outcome == "ok" or on == "$result.outcome"
        case End(end):
            assert outcome != "ok"
            assert end == outcome
        case Unroutable(code, message):
            assert code in {"noCase", "noValue", "notScalar"}
            assert len(message.splitlines()) == 1


@pytest.mark.parametrize("edges", [(), (Edge(source="a", to="b"),)])
def test_an_approval_that_does_not_hold_leads_back_to_the_decision(edges: tuple[Edge, ...]) -> None:
    """Whatever the edges say; another failure, and another node's, follow them."""
    plain = defined(*edges)
    action = Node(type="action", timeout_ms=0, approved_by="c")
    bound = plain.model_copy(update={"nodes": {**plain.nodes, "a": action}})
    assert route(bound, "a", "failed", unread, APPROVAL_STALE) == Next("c")
    assert route(bound, "a", "failed", unread, "nodeFailed") == End("failed")
    assert route(bound, "a", "cancelled", unread, APPROVAL_STALE) == End("cancelled")
    assert route(plain, "a", "failed", unread, APPROVAL_STALE) == End("failed")
    assert retry_delay_ms(action.model_copy(update={"retry": RETRY}), "failed", 1) == 0
    assert (
        retry_delay_ms(action.model_copy(update={"retry": RETRY}), "failed", 1, APPROVAL_STALE)
        is None
    )
