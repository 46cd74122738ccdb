"""Included workflows: an invocation sees its input and its own outputs, and leaves by an exit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.base.canonical import Json
from pi_workflows.protocol.content import JsonRef
from pi_workflows.protocol.proposals import FinishAttempt, FinishRun, ReserveEffect, StartAttempt
from pi_workflows.protocol.runner import Failed, Last, MountState, OpenVisit, Resume
from tests.runner.peer import Peer, launch_of, of_kind

pytestmark = pytest.mark.slow

TWICE = """
class Part(BaseModel):
    name: str
    rounds: int = 1

class Sum(BaseModel):
    total: int
    seen: list[str]

@compute
def count(ctx):
    return ctx.outputs.get("count", 0) + 1

@compute
def end(ctx) -> Sum:
    assert ctx.node_path.endswith("/end"), ctx.node_path
    return Sum(total=ctx.output_of(count), seen=sorted(ctx.outputs))

child = define_workflow("counting", input=Part, start="count", max_steps=LIMIT,
    nodes={"count": count, "check": compute(lambda ctx: ctx.output_of(count) >= ctx.input.rounds),
           "end": end},
    edges=[edge("count", "check"), switch("check", on="$", cases={True: "end", False: "count"})],
    exits={"done": exit("end", output=Sum)})

@compute
def plan(ctx):
    return len(ctx.outputs)

@compute
def last(ctx):
    a, b = (included_result(child, ctx.outputs[name]) for name in ("a", "b"))
    assert "count" not in ctx.outputs and "count" not in ctx.results
    return [a.exit, a.output.total, b.output.total, b.output.seen, ctx.visit, sorted(ctx.outputs)]

workflow = define_workflow("twice", input=Input, start="plan", max_steps=MAX,
    nodes={"plan": plan, "last": last},
    includes={
        "a": include(child, input=lambda ctx: {"name": "a", "rounds": ctx.input.n}),
        "b": include(child, input=lambda ctx: Part(
            name="b", rounds=ctx.outputs["a"]["output"]["total"])),
    },
    edges=[edge("plan", "a"), edge("a.done", "b"), switch("b.done", on="$.total", cases=ENDS)])
"""


def twice(*, limit: int = 50, most: int = 50, ends: str = '{1: "last", 2: "last"}') -> str:
    """Return a workflow that includes another one twice."""
    return TWICE.replace("LIMIT", str(limit)).replace("MAX", str(most)).replace("ENDS", ends)


def ended(peer: Peer) -> tuple[str, Json, str | None]:
    """Return how the run ended: outcome, output, and the failure's line."""
    last = peer.commands[-1]
    assert isinstance(last, FinishRun), peer.printed()
    output = peer.value(last.output) if last.output is not None else None
    return last.outcome, output, last.error.message if last.error else None


def started(peer: Peer) -> list[tuple[str, int]]:
    """Return the nodes that were started, with their visits."""
    return [(each.node_path, each.visit) for each in of_kind(peer.commands, StartAttempt)]


def test_one_child_stands_under_two_names(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Each has its own input and outputs; the parent sees the newest exit and no inner node."""
    peer = start()
    peer.begin(launch_of(author(twice()), {"n": 2}))
    peer.serve()
    assert ended(peer) == (
        "completed",
        ["done", 2, 2, ["check", "count"], 1, ["a", "b", "plan"]],
        None,
    )
    assert started(peer)[:4] == [("plan", 1), ("a/count", 1), ("a/check", 1), ("a/count", 2)]


def test_case_16_an_entry_sees_nothing_of_the_one_before(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A loop enters a mount again: its counter begins anew, as do its visits' outputs."""
    text = (
        twice(ends='{1: "again"}')
        .replace('"last": last}', '"last": last, "again": compute(lambda ctx: ctx.visit)}')
        .replace(
            'edge("plan", "a"),',
            'edge("plan", "a"), switch("again", on="$", cases={1: "a", 2: "last"}),',
        )
    )
    peer = start()
    peer.begin(launch_of(author(text), {"n": 1}))
    peer.serve()
    outcome, output, _ = ended(peer)
    assert outcome == "completed"
    assert output == ["done", 1, 1, ["check", "count"], 1, ["a", "again", "b", "plan"]]
    assert started(peer).count(("a/count", 2)) == 1


@pytest.mark.parametrize(
    ("limit", "most", "message"),
    [
        (3, 50, "a took 3 steps, which is its limit, before a/check"),
        (50, 6, "the run took 6 steps, which is its limit, before b/count"),
    ],
)
def test_limits_hold_per_invocation_and_for_every_ancestor(
    limit: int, most: int, message: str, author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A child's limit counts its own steps; entering and leaving are no steps."""
    peer = start()
    peer.begin(launch_of(author(twice(limit=limit, most=most)), {"n": 2}))
    peer.serve()
    assert ended(peer) == ("failed", None, message)


def test_an_input_that_does_not_fit_fails_the_run(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Nothing of the included workflow starts; the failure names the mount and the member."""
    text = twice().replace('{"name": "a",', '{"nome": "a",')
    peer = start()
    peer.begin(launch_of(author(text), {"n": 2}))
    peer.serve()
    outcome, _, message = ended(peer)
    assert outcome == "failed"
    assert message is not None
    assert message.startswith("a: its input cannot be made: ")
    assert "input.name" in message
    assert started(peer) == [("plan", 1)]


def test_case_17_a_failed_repetition_takes_the_output_away(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Also inside a mount, by its own names."""
    text = """
@compute
def flaky(ctx):
    if ctx.visit == 2:
        raise RuntimeError("no")
    return ctx.visit

@compute
def look(ctx):
    return ["flaky" in ctx.outputs, ctx.results["flaky"].outcome]

child = define_workflow("c", input=Empty, start="flaky",
    nodes={"flaky": flaky, "look": look, "again": compute(lambda ctx: 1)},
    edges=[switch("flaky", on="$result.outcome", cases={"ok": "again", "failed": "look"}),
           edge("again", "flaky")],
    exits={"out": exit("look")})
workflow = define_workflow("p", input=Input, start="c",
    nodes={"end": compute(lambda ctx: ctx.outputs["c"])},
    includes={"c": include(child)}, edges=[edge("c.out", "end")])
"""
    peer = start()
    peer.begin(launch_of(author(text), {}))
    peer.serve()
    assert ended(peer) == ("completed", {"exit": "out", "output": [False, "failed"]}, None)


ACTING = """
@action(effect=idempotent_effect("deploy"))
def deploy(ctx):
    return [ctx.node_path, ctx.effect_key]

child = define_workflow("c", input=Input, start="deploy", nodes={"deploy": deploy},
    exits={"out": exit("deploy")})
workflow = define_workflow("p", input=Input, start="a", nodes={},
    includes={"a": include(child, input=lambda ctx: ctx.input),
              "b": include(child, input=lambda ctx: {"n": ctx.outputs["a"]["exit"] == "out"})},
    edges=[edge("a.out", "b")])
"""


def test_case_03_one_node_under_two_mounts_has_two_effects(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Effects are keyed by the full path, and ask with the invocation's own input."""
    peer = start()
    peer.begin(launch_of(author(ACTING), {"n": 7}))
    peer.serve()
    reserved = of_kind(peer.commands, ReserveEffect)
    assert [peer.value(each.request) for each in reserved] == [
        {"input": {"n": 7}, "outputs": {}},
        {"input": {"n": 1}, "outputs": {}},
    ]
    assert len({each.attempt_id for each in reserved}) == 2


def resume(**members: object) -> Resume:
    """Return where a run stands."""
    return Resume.model_validate(
        {
            "run_revision": 9,
            "step_total": 4,
            "visits": {"plan": 1, "a/count": 3, "a/check": 2},
            "attempts": {"plan": 1, "a/count": 3, "a/check": 2},
            "outputs": {},
            "results": {},
            **members,
        }
    )


def test_a_resumed_invocation_goes_on_with_what_it_had(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Its outputs, the steps that it took, and its input, made again of the same context."""
    state = resume(
        outputs={"plan": JsonRef(value=0), "a/count": JsonRef(value=1)},
        mounts={"a": MountState(steps=2)},
        last=Last(node_path="a/check", visit=2, tries=1, outcome="ok"),
        open=OpenVisit(attempt_id="x", node_path="a/count", visit=3, tries=0),
    )
    path = author(twice(limit=4))
    peer = start()
    peer.begin(launch_of(path, {"n": 2}, resume=state))
    peer.serve()
    assert started(peer) == [("a/count", 3), ("a/check", 3)]
    finished = of_kind(peer.commands, FinishAttempt)
    assert [peer.value(each.output) for each in finished] == [2, True]
    assert ended(peer)[2] == "a took 4 steps, which is its limit, before a/end"


def test_a_resumed_parent_knows_how_a_mount_was_left(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The newest exit is the mount's output, for the parent's functions and for the next input."""
    exit_output: Json = {"total": 1, "seen": []}
    state = resume(
        visits={"a/end": 1},
        mounts={"a": MountState(exit="done", output=JsonRef(value=exit_output))},
        exited={"a/end": 1},
        outputs={"plan": JsonRef(value=0)},
        last=Last(node_path="a/end", visit=1, tries=1, outcome="ok"),
    )
    peer = start()
    peer.begin(launch_of(author(twice()), {"n": 2}, resume=state))
    peer.serve()
    assert ended(peer)[1] == ["done", 1, 1, ["check", "count"], 1, ["a", "b", "plan"]]


def test_case_18_an_included_file_that_changed_is_not_executed(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Only the child's file is another one: nothing of the parent runs either."""
    path = author(
        'print("loaded")\n'
        'workflow = define_workflow("p", input=Input, start="c",'
        ' nodes={}, includes={"c": include("./other/child_workflow.py")})\n'
    )
    child = path.parent / "other" / "child_workflow.py"
    child.parent.mkdir()
    text = (
        "from pydantic import BaseModel\n"
        "from pi_workflows import *\n"
        "class E(BaseModel):\n    pass\n"
        'workflow = define_workflow("c", input=E, start="x",'
        ' nodes={"x": compute(lambda ctx: 1)}, exits={"out": exit("x")})\n'
    )
    child.write_text(text)
    launch = launch_of(path, {})
    assert [(mount.mount, mount.source.ref) for mount in launch.mounts] == [
        ("", str(path)),
        ("c", str(child)),
    ]
    child.write_text(text + "\n")
    peer = start()
    peer.send(launch)
    failed = peer.next(Failed)
    assert failed.code == "workflowSourceChanged"
    assert str(child) in failed.message
    assert "loaded" not in peer.printed()
    child.write_text(text)
    second = start()
    second.begin(launch)
    second.serve()
    assert ended(second) == ("completed", 1, None)
