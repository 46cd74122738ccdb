"""What a run does next is a pure function of its history and its definition."""

from __future__ import annotations

import pytest

from pi_workflows.definition.selector import NodeOutcome
from pi_workflows.definition.snapshot import Edge, Node, RetryPolicy, Snapshot
from pi_workflows.protocol.proposals import Failure
from pi_workflows.protocol.runner import Last, OpenVisit, Resume
from pi_workflows.runner import plan
from pi_workflows.runner.history import History, Outputs
from pi_workflows.runner.plan import Enter, Later, Over, Settled

RETRY = RetryPolicy(max_attempts=2, on=("failed",), delay_ms=0, backoff=1.0)
LATER = RetryPolicy(max_attempts=2, on=("failed",), delay_ms=50, backoff=1.0)


def snapshot(*, retry: RetryPolicy | None = None, max_steps: int = 10) -> Snapshot:
    """Return a definition of `a`, then `b` for ok, `c` for a timeout."""
    return Snapshot(
        name="planned",
        start_at="a",
        max_steps=max_steps,
        nodes={
            "a": Node(type="compute", timeout_ms=0, retry=retry),
            "b": Node(type="compute", timeout_ms=0),
            "c": Node(type="compute", timeout_ms=0),
        },
        edges=(
            Edge.model_validate(
                {"from": "a", "on": "$result.outcome", "cases": {"ok": "b", "timed_out": "c"}}
            ),
        ),
    )


def history(outcome: NodeOutcome, *, path: str = "a", steps: int = 0) -> History:
    """Return the history of a run whose newest attempt ended so."""
    past = History(step_total=steps, visits={"a": 1, "c": 3}, attempts={"a": 1})
    failure = None if outcome == "ok" else Failure(code="why", message="because")
    past.settle(path, 1, outcome, b"1" if outcome == "ok" else None, failure)
    return past


def resume(last: Last | None = None, left: OpenVisit | None = None) -> Resume:
    """Return where a run stands."""
    return Resume(
        run_revision=1,
        step_total=1,
        visits={},
        attempts={},
        outputs={},
        results={},
        last=last,
        open=left,
    )


def test_a_new_run_enters_its_first_node() -> None:
    """The first visit, without tries."""
    assert plan.first(snapshot(), History(), None) == Enter("a", 1, 0)


def test_a_route_enters_the_next_visit() -> None:
    """A path that was entered three times is entered a fourth time."""
    timed_out = Settled("a", 1, 1, "timed_out")
    assert plan.after(snapshot(), history("timed_out"), timed_out) == Enter("c", 4, 0)


def test_a_retry_keeps_the_visit_and_counts_the_tries() -> None:
    """It goes before the route."""
    failed = Settled("a", 7, 1, "failed")
    assert plan.after(snapshot(retry=RETRY), history("failed"), failed) == Enter("a", 7, 1)


def test_a_delayed_retry_is_later() -> None:
    """The run leaves its runner until then."""
    failed = Settled("a", 1, 1, "failed")
    assert plan.after(snapshot(retry=LATER), history("failed"), failed) == Later(
        50, Enter("a", 1, 1)
    )


def test_an_edge_that_waits_is_later_and_has_waited_when_launched_again() -> None:
    """The next visit is due after the output's milliseconds, and at once in the next launch."""
    edges = (Edge(source="a", to="c", delay="$.wait_ms"), Edge(source="c", to="b"))
    waiting = snapshot().model_copy(update={"edges": edges})
    past = History(step_total=1, visits={"a": 1, "c": 3}, attempts={"a": 1, "c": 3})
    past.settle("a", 1, "ok", b'{"wait_ms":50}', None)
    due = Enter("c", 4, 0)
    assert plan.after(waiting, past, Settled("a", 1, 1, "ok")) == Later(50, due)
    last = Last(node_path="a", visit=1, tries=1, outcome="ok")
    assert plan.first(waiting, past, resume(last)) == due
    spent = waiting.model_copy(update={"max_steps": 1})
    assert isinstance(plan.after(spent, past, Settled("a", 1, 1, "ok")), Over)


def test_a_delayed_retry_has_waited_when_the_run_is_launched_again() -> None:
    """The launch after the delay starts it at once."""
    last = Last(node_path="a", visit=1, tries=1, outcome="failed")
    step = plan.first(snapshot(retry=LATER), history("failed"), resume(last))
    assert step == Enter("a", 1, 1)


def test_a_lost_visit_is_entered_again() -> None:
    """What was open goes before what settled last."""
    last = Last(node_path="a", visit=1, tries=1, outcome="ok")
    left = OpenVisit(attempt_id="x", node_path="b", visit=2, tries=1)
    assert plan.first(snapshot(), history("ok"), resume(last, left)) == Enter("b", 2, 1)


def test_a_final_node_completes_the_run_with_its_output() -> None:
    """A node without an edge is the end."""
    step = plan.after(snapshot(), history("ok", path="b"), Settled("b", 1, 1, "ok"))
    assert step == Over("completed", output=b"1")


@pytest.mark.parametrize("outcome", ["failed", "timed_out"])
def test_an_outcome_without_a_way_ends_the_run_with_the_nodes_reason(outcome: NodeOutcome) -> None:
    """The run's failure has the node's code and names the node."""
    step = plan.after(snapshot(), history(outcome, path="b"), Settled("b", 1, 1, outcome))
    assert isinstance(step, Over)
    assert step.outcome == outcome
    assert step.failure == Failure(code="why", message="b: because")


def test_a_switch_without_the_case_fails_the_run() -> None:
    """`failed` is no case of the switch after `a`."""
    step = plan.after(snapshot(), history("failed"), Settled("a", 1, 1, "failed"))
    assert isinstance(step, Over)
    assert step.failure is not None
    assert step.failure.code == "noCase"


@pytest.mark.parametrize("retry", [None, RETRY, LATER])
def test_no_step_is_entered_past_the_limit(retry: RetryPolicy | None) -> None:
    """Neither by a route nor by a retry, at once or later."""
    outcome: NodeOutcome = "ok" if retry is None else "failed"
    step = plan.after(
        snapshot(retry=retry, max_steps=3), history(outcome, steps=2), Settled("a", 1, 1, outcome)
    )
    assert isinstance(step, Over)
    assert step.failure is not None
    assert step.failure.code == "maxSteps"


def test_outputs_are_read_anew_by_every_view() -> None:
    """Changing a value that one view gave changes neither the stored bytes nor another view."""
    contents = {"a": b'{"items":[1]}'}
    first, second = Outputs(contents), Outputs(contents)
    first["a"]["items"].append(2)
    assert first["a"] == {"items": [1, 2]}
    assert second["a"] == {"items": [1]}
    assert (list(first), len(first), "b" in first) == (["a"], 1, False)
