"""A run goes where its route leads: one attempt after the other, each boundary one proposal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.base import ids
from pi_workflows.protocol.proposals import FinishAttempt, FinishRun, StartAttempt
from tests.runner.peer import RUN_ID, Peer, launch_of, of_kind

pytestmark = pytest.mark.slow


LINEAR = """
@compute
def double(ctx):
    return {"n": ctx.input.n * 2}

@compute
async def show(ctx):
    await trio.sleep(0)
    return f"{ctx.outputs['double']['n']} {ctx.results['double'].outcome}"

workflow = define_workflow("linear", input=Input, start="double",
    nodes={"double": double, "show": show}, edges=[edge("double", "show")])
"""


def test_a_linear_run_ends_with_its_last_output(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Each node sees the outputs before it, and the last one's output is the run's."""
    peer = start()
    peer.begin(launch_of(author(LINEAR), {"n": 4}))
    commands = peer.serve()
    assert [type(command).__name__ for command in commands] == [
        "StartAttempt",
        "FinishAttempt",
        "StartAttempt",
        "FinishAttempt",
        "FinishRun",
    ]
    last = commands[-1]
    assert isinstance(last, FinishRun)
    assert (last.outcome, peer.value(last.output)) == ("completed", "8 ok")
    assert peer.wait() == 0, peer.printed()


def test_a_boundary_is_one_proposal(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A node's end travels with the next node's start, and the last one's with the run's end."""
    peer = start()
    peer.begin(launch_of(author(LINEAR), {"n": 4}))
    peer.serve()
    assert [len(proposal.commands) for proposal in peer.proposals] == [1, 2, 2]


def test_attempts_carry_the_derived_identity(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The server computes the same attempt IDs from run, node path and number."""
    peer = start()
    peer.begin(launch_of(author(LINEAR), {"n": 4}))
    starts = of_kind(peer.serve(), StartAttempt)
    assert [(s.node_path, s.visit, s.attempt_number, s.timeout_ms) for s in starts] == [
        ("double", 1, 1, 900_000),
        ("show", 1, 1, 900_000),
    ]
    for attempt in starts:
        assert attempt.attempt_id == ids.attempt_id(RUN_ID, attempt.node_path, 1)


LOOP = """
@compute
def step(ctx):
    done = ctx.outputs.get("step", {"n": 0})["n"] + 1
    return {"n": done, "more": done < ctx.input.n}

@compute
def end(ctx):
    return [ctx.visit, ctx.outputs["step"]["n"], ctx.output_of(step)["n"]]

workflow = define_workflow("loop", input=Input, start="step", max_steps=MAX,
    nodes={"step": step, "end": end},
    edges=[switch("step", on="$.more", cases={"true": "step", "false": "end"})])
"""


def test_a_switch_loops_with_a_new_visit_each_time(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Entering a node again is its next visit and its next attempt."""
    peer = start()
    peer.begin(launch_of(author(LOOP.replace("MAX", "50")), {"n": 5}))
    commands = peer.serve()
    steps = [s for s in of_kind(commands, StartAttempt) if s.node_path == "step"]
    assert [(s.visit, s.attempt_number) for s in steps] == [(n, n) for n in range(1, 6)]
    (end,) = of_kind(commands, FinishRun)
    assert peer.value(end.output) == [1, 5, 5]


def test_a_loop_ends_at_the_limit_of_steps(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The runner fails the run itself instead of proposing a step too many."""
    peer = start()
    peer.begin(launch_of(author(LOOP.replace("MAX", "7")), {"n": 100}))
    commands = peer.serve()
    assert len(of_kind(commands, StartAttempt)) == 7
    (end,) = of_kind(commands, FinishRun)
    assert end.outcome == "failed"
    assert end.error is not None
    assert end.error.code == "maxSteps"
    assert peer.wait() == 0


FAILING = """
@compute
def first(ctx):
    BODY

@compute
def second(ctx):
    return ["first" in ctx.outputs, ctx.results["first"].outcome, ctx.results["first"].error]

workflow = define_workflow("failing", input=Input, start="first",
    nodes={"first": first, "second": second}, edges=[EDGE])
"""
ROUTED = 'switch("first", on="$result.outcome", cases={"ok": "second", "failed": "second"})'


def failing(body: str, edge: str = "") -> str:
    """Return a workflow whose first node does something."""
    return FAILING.replace("BODY", body).replace("EDGE", edge or 'edge("first", "second")')


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("raise ValueError('no luck')", "raised", "ValueError: no luck"),
        ("sys.exit(3)", "raised", "SystemExit: 3"),
        ("return {1, 2}", "notJson", "output: set is not a JSON value"),
        ("return {'a': [0, float('nan')]}", "numberNotFinite", "output.a[1]"),
        ("return 'x' * 9_000_000", "valueTooLarge", "output: 9,000,002 bytes"),
        ("raise RuntimeError('\\udc80')", "raised", "RuntimeError: ?"),
        ("raise type('Mute', (Exception,), {'__str__': lambda self: 1 / 0})", "raised", "Mute"),
    ],
)
def test_what_a_node_cannot_do_fails_it_and_its_run(
    author: Callable[[str], Path], start: Callable[[], Peer], body: str, code: str, words: str
) -> None:
    """An error, an exit and an output that cannot be stored fail the node, each under its code."""
    peer = start()
    peer.begin(launch_of(author(failing(body)), {}))
    commands = peer.serve()
    (finish,) = of_kind(commands, FinishAttempt)
    assert (finish.outcome, finish.output) == ("failed", None)
    assert finish.error is not None
    assert finish.error.code == code
    assert words in finish.error.message
    (end,) = of_kind(commands, FinishRun)
    assert end.outcome == "failed"
    assert end.error is not None
    assert end.error.code == code
    assert end.error.message.startswith("first: ")
    assert peer.wait() == 0


def test_an_error_names_the_authors_line(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A failure says where in the workflow file it came from."""
    path = author(failing("return {}['missing']"))
    line = path.read_text().splitlines().index("    return {}['missing']") + 1
    peer = start()
    peer.begin(launch_of(path, {}))
    (end,) = of_kind(peer.serve(), FinishRun)
    assert end.error is not None
    assert f"{path}:{line}" in end.error.message


def test_a_failure_follows_a_result_switch(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A node that failed may lead on; its output is not there, its reason is."""
    peer = start()
    peer.begin(launch_of(author(failing("raise ValueError('no luck')", ROUTED)), {}))
    (end,) = of_kind(peer.serve(), FinishRun)
    assert end.outcome == "completed"
    output = peer.value(end.output)
    assert isinstance(output, list)
    assert output[:2] == [False, "failed"]
    assert "no luck" in str(output[2])


def test_a_value_without_a_case_fails_the_run(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The node stays `ok`; the run ends with the switch's reason."""
    edge = 'switch("first", on="$.kind", cases={"a": "second"})'
    peer = start()
    peer.begin(launch_of(author(failing("return {'kind': 'b'}", edge)), {}))
    commands = peer.serve()
    (finish,) = of_kind(commands, FinishAttempt)
    (end,) = of_kind(commands, FinishRun)
    assert (finish.outcome, end.outcome) == ("ok", "failed")
    assert end.error is not None
    assert end.error.code == "noCase"


REPEATED = """
@compute
def work(ctx):
    if ctx.visit == 2:
        raise ValueError("second time")
    return {"visit": ctx.visit}

@compute
def look(ctx):
    return {"seen": "work" in ctx.outputs, "again": ctx.visit == 1}

workflow = define_workflow("repeated", input=Input, start="work",
    nodes={"work": work, "look": look, "end": compute(lambda ctx: ctx.outputs["look"]["seen"])},
    edges=[switch("work", on="$result.outcome", cases={"ok": "look", "failed": "look"}),
           switch("look", on="$.again", cases={"true": "work", "false": "end"})])
"""


def test_a_failed_repeat_removes_the_earlier_output(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Outputs hold the newest attempt's output, and only when that was `ok`."""
    peer = start()
    peer.begin(launch_of(author(REPEATED), {}))
    (end,) = of_kind(peer.serve(), FinishRun)
    assert peer.value(end.output) is False


MUTATING = """
@compute
def make(ctx):
    value = {"items": [1]}
    ctx.input.n = 99
    return value

@compute
def spoil(ctx):
    ctx.outputs["make"]["items"].append(2)
    return None

@compute
def read(ctx):
    return [ctx.input.n, ctx.outputs["make"]["items"]]

workflow = define_workflow("mutating", input=Input, start="make",
    nodes={"make": make, "spoil": spoil, "read": read},
    edges=[edge("make", "spoil"), edge("spoil", "read")])
"""


def test_what_a_node_changes_changes_nothing_for_the_next(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Every node sees input and outputs as they are stored, as it would after a resume."""
    peer = start()
    peer.begin(launch_of(author(MUTATING), {"n": 3}))
    (end,) = of_kind(peer.serve(), FinishRun)
    assert peer.value(end.output) == [3, [1]]


MODELLED = """
class Report(BaseModel):
    total: int

@compute
def make(ctx) -> Report:
    return BODY

@compute
def read(ctx):
    report = ctx.output_of(make)
    return [type(report).__name__, report.total]

workflow = define_workflow("modelled", input=Input, start="make",
    nodes={"make": make, "read": read}, edges=[edge("make", "read")])
"""


def test_a_model_travels_as_json_and_comes_back_typed(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """What one node returns as a model the next one gets as that model."""
    peer = start()
    peer.begin(launch_of(author(MODELLED.replace("BODY", "Report(total=4)")), {}))
    commands = peer.serve()
    assert peer.value(of_kind(commands, FinishAttempt)[0].output) == {"total": 4}
    (end,) = of_kind(commands, FinishRun)
    assert peer.value(end.output) == ["Report", 4]


def test_an_output_that_does_not_fit_its_model_fails_the_node(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The failure names the member."""
    peer = start()
    peer.begin(launch_of(author(MODELLED.replace("BODY", "{'total': 'many'}")), {}))
    (finish,) = of_kind(peer.serve(), FinishAttempt)
    assert finish.error is not None
    assert finish.error.code == "outputInvalid"
    assert "output.total" in finish.error.message
