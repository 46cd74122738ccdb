"""Time: budgets of active time, retries at once and later, functions that do not end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.protocol.proposals import (
    FinishAttempt,
    FinishRun,
    Requeue,
    StartAttempt,
)
from pi_workflows.protocol.runner import Last, Resume
from tests.runner.peer import Peer, launch_of, of_kind

pytestmark = pytest.mark.slow

SLOW = """
@compute(timeout=timedelta(milliseconds=150) RETRY)
DEF work(ctx):
    BODY

workflow = define_workflow("slow", input=Input, start="work", max_steps=MAX,
    nodes={"work": work, "late": compute(lambda ctx: ctx.results["work"].outcome)},
    edges=[switch("work", on="$result.outcome", cases={"ok": "late", "timed_out": "late"})])
"""
BODIES = {
    "async": ("async def", "await trio.sleep_forever()"),
    "cooperative": ("def", "ctx.cancel.wait(60)"),
    "keeps the interpreter": ("def", "return sum(range(40_000_000))"),
    "returns an awaitable": ("def", "return trio.sleep_forever()"),
    "swallows its cancellation": (
        "async def",
        "try:\n        await trio.sleep_forever()\n    finally:\n        return 1",
    ),
}


def slow(kind: str, *, retry: str = "", max_steps: int = 10) -> str:
    """Return a workflow whose first node takes too long."""
    define, body = BODIES[kind]
    text = SLOW.replace("DEF", define).replace("BODY", body).replace("MAX", str(max_steps))
    return text.replace("RETRY", f", retry={retry}" if retry else "")


@pytest.mark.parametrize("kind", list(BODIES))
def test_a_budget_that_ends_is_routed_by_the_outcome(
    author: Callable[[str], Path], start: Callable[[], Peer], kind: str
) -> None:
    """A node over its time is `timed_out`, whatever it returns after it, and the route goes on."""
    peer = start()
    peer.begin(launch_of(author(slow(kind)), {}))
    commands = peer.serve()
    finish = of_kind(commands, FinishAttempt)[0]
    assert finish.outcome == "timed_out"
    assert finish.error is not None
    assert finish.error.code == "timedOut"
    assert finish.elapsed_ns >= 150_000_000
    (end,) = of_kind(commands, FinishRun)
    assert peer.value(end.output) == "timed_out"
    assert peer.wait() == 0, peer.printed()


NEARER = """
workflow = define_workflow("nearer", input=Input, start="quick",
    nodes={"quick": compute(lambda ctx: 1),
           "slow": compute(lambda ctx: ctx.cancel.wait(60), timeout=timedelta(milliseconds=150))},
    edges=[edge("quick", "slow")])
"""


def test_each_node_has_its_own_budget(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A short budget is kept also when a long one was watched before it."""
    peer = start()
    peer.begin(launch_of(author(NEARER), {}))
    commands = peer.serve()
    assert [finish.outcome for finish in of_kind(commands, FinishAttempt)] == ["ok", "timed_out"]
    assert of_kind(commands, FinishRun)[0].outcome == "timed_out"


STUCK = """
@compute(timeout=timedelta(milliseconds=100))
BODY

workflow = define_workflow("stuck", input=Input, start="work",
    nodes={"work": work, "late": compute(lambda ctx: ctx.results["work"].outcome)},
    edges=[switch("work", on="$result.outcome", cases={"ok": "late", "timed_out": "late"})])
"""


@pytest.mark.parametrize(
    "body",
    [
        "def work(ctx):\n    time.sleep(60)",
        (
            "async def work(ctx):\n    while True:\n        try:\n"
            "            await trio.sleep(60)\n        except BaseException:\n            continue"
        ),
    ],
)
def test_a_function_that_cannot_be_ended_takes_the_process_but_not_the_step(
    author: Callable[[str], Path], start: Callable[[], Peer], body: str
) -> None:
    """Two seconds after its limit the node is settled and the process ends; the next routes on."""
    path = author(STUCK.replace("BODY", body))
    peer = start()
    peer.begin(launch_of(path, {}))
    commands = peer.serve()
    assert [type(command).__name__ for command in commands] == ["StartAttempt", "FinishAttempt"]
    assert of_kind(commands, FinishAttempt)[0].outcome == "timed_out"
    assert peer.wait() == 70
    assert "work: its function still runs" in peer.printed()

    resume = Resume.model_validate(
        {
            "run_revision": 4,
            "step_total": 1,
            "visits": {"work": 1},
            "attempts": {"work": 1},
            "outputs": {},
            "results": {"work": {"outcome": "timed_out", "error": {"code": "a", "message": "b"}}},
            "last": Last(node_path="work", visit=1, tries=1, outcome="timed_out"),
        },
        by_name=True,
    )
    peer = start()
    peer.begin(launch_of(path, {}, resume=resume))
    (end,) = of_kind(peer.serve(), FinishRun)
    assert peer.value(end.output) == "timed_out"


@pytest.mark.parametrize(
    ("timeout", "expected_ms"),
    [
        ("lambda ctx: timedelta(seconds=ctx.input.n)", 3_000),
        ("lambda ctx: None", 0),
    ],
)
def test_a_computed_budget_is_what_the_attempt_starts_with(
    author: Callable[[str], Path], start: Callable[[], Peer], timeout: str, expected_ms: int
) -> None:
    """A budget may be a function of the context; None is no limit."""
    text = f"""
workflow = define_workflow("computed", input=Input, start="a",
    nodes={{"a": compute(lambda ctx: 1, timeout={timeout})}})
"""
    peer = start()
    peer.begin(launch_of(author(text), {"n": 3}))
    commands = peer.serve()
    assert of_kind(commands, StartAttempt)[0].timeout_ms == expected_ms
    assert of_kind(commands, FinishRun)[0].outcome == "completed"


@pytest.mark.parametrize(
    ("timeout", "code"),
    [("lambda ctx: 1 / 0", "raised"), ("lambda ctx: 5", "timeoutInvalid")],
)
def test_a_budget_that_cannot_be_computed_fails_the_node(
    author: Callable[[str], Path], start: Callable[[], Peer], timeout: str, code: str
) -> None:
    """The attempt starts with the default budget and fails without running its function."""
    text = f"""
workflow = define_workflow("computed", input=Input, start="a",
    nodes={{"a": compute(lambda ctx: print("it ran"), timeout={timeout})}})
"""
    peer = start()
    peer.begin(launch_of(author(text), {}))
    commands = peer.serve()
    (finish,) = of_kind(commands, FinishAttempt)
    assert finish.error is not None
    assert (finish.outcome, finish.error.code) == ("failed", code)
    assert "it ran" not in peer.printed()


FLAKY = """
@compute(retry=Retry(max_attempts=3, delay=timedelta(seconds=DELAY), backoff=2.0))
def work(ctx):
    if ctx.attempt_number < ctx.input.n:
        raise ValueError("not yet")
    return [ctx.visit, ctx.attempt_number]

workflow = define_workflow("flaky", input=Input, start="work", max_steps=MAX, nodes={"work": work})
"""


def flaky(*, delay: int = 0, max_steps: int = 10) -> str:
    """Return a workflow whose node succeeds on its n-th attempt."""
    return FLAKY.replace("DELAY", str(delay)).replace("MAX", str(max_steps))


def test_a_retry_without_delay_is_the_next_attempt_of_the_same_visit(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A retry that succeeds on its third attempt completes the run in one runner."""
    peer = start()
    peer.begin(launch_of(author(flaky()), {"n": 3}))
    commands = peer.serve()
    assert [(s.visit, s.attempt_number) for s in of_kind(commands, StartAttempt)] == [
        (1, 1),
        (1, 2),
        (1, 3),
    ]
    assert peer.value(of_kind(commands, FinishRun)[0].output) == [1, 3]


def test_retries_end(author: Callable[[str], Path], start: Callable[[], Peer]) -> None:
    """After the declared number of attempts the failure ends the run."""
    peer = start()
    peer.begin(launch_of(author(flaky()), {"n": 9}))
    commands = peer.serve()
    assert len(of_kind(commands, StartAttempt)) == 3
    assert of_kind(commands, FinishRun)[0].outcome == "failed"


def test_retries_count_as_steps(author: Callable[[str], Path], start: Callable[[], Peer]) -> None:
    """A retry past the limit of steps is not started, and not queued either."""
    for delay in (0, 10):
        peer = start()
        peer.begin(launch_of(author(flaky(delay=delay, max_steps=1)), {"n": 9}))
        commands = peer.serve()
        assert len(of_kind(commands, StartAttempt)) == 1
        (end,) = of_kind(commands, FinishRun)
        assert end.error is not None
        assert end.error.code == "maxSteps"


def test_a_delayed_retry_goes_back_to_the_queue_and_starts_when_launched_again(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The delay passes without a runner; the launch after it does not wait once more."""
    path = author(flaky(delay=10))
    peer = start()
    peer.begin(launch_of(path, {"n": 3}))
    commands = peer.serve()
    last = commands[-1]
    assert isinstance(last, Requeue)
    assert last.delay_ms == 10_000
    assert isinstance(commands[-2], FinishAttempt)
    assert len(peer.proposals[-1].commands) == 2
    assert peer.wait() == 0

    failure = {"code": "raised", "message": "not yet"}
    resume = Resume.model_validate(
        {
            "run_revision": 4,
            "step_total": 1,
            "visits": {"work": 1},
            "attempts": {"work": 1},
            "outputs": {},
            "results": {"work": {"outcome": "failed", "error": failure}},
            "last": Last(node_path="work", visit=1, tries=1, outcome="failed"),
        },
        by_name=True,
    )
    peer = start()
    peer.begin(launch_of(path, {"n": 3}, resume=resume))
    commands = peer.serve()
    (attempt,) = of_kind(commands, StartAttempt)
    assert (attempt.visit, attempt.attempt_number) == (1, 2)
    last = commands[-1]
    assert isinstance(last, Requeue)
    assert last.delay_ms == 20_000
