"""Launching: nothing executes that is not byte for byte what the run was started with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.protocol import frames
from pi_workflows.protocol.content import BlobRef, JsonRef
from pi_workflows.protocol.proposals import FinishAttempt, FinishRun, StartAttempt
from pi_workflows.protocol.runner import Failed, Last, OpenVisit, Resume
from tests.runner.peer import Peer, launch_of, of_kind

pytestmark = pytest.mark.slow

SIMPLE = """
print("loaded")

@compute
def a(ctx):
    return ctx.input.n

@compute
def b(ctx):
    return [ctx.outputs["a"], ctx.visit, ctx.attempt_number]

workflow = define_workflow("simple", input=Input, start="a", max_steps=MAX,
    nodes={"a": a, "b": b}, edges=[edge("a", "b")])
"""


def simple(max_steps: int = 10) -> str:
    """Return a workflow of two nodes."""
    return SIMPLE.replace("MAX", str(max_steps))


def test_a_runner_is_ready_with_what_it_was_launched_with(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """It answers the digest and the sources that it verified."""
    peer = start()
    launch = launch_of(author(simple()), {"n": 1})
    ready = peer.begin(launch)
    assert (ready.definition_digest, ready.mounts) == (launch.definition_digest, launch.mounts)


def test_a_changed_source_is_not_executed(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """One byte more in the file is another workflow."""
    path = author(simple())
    launch = launch_of(path, {})
    path.write_text(path.read_text() + "\n")
    peer = start()
    peer.send(launch)
    failed = peer.next(Failed)
    assert failed.code == "workflowSourceChanged"
    assert str(path) in failed.message
    assert peer.wait() == 0
    assert "loaded" not in peer.printed()


def test_a_changed_helper_is_not_executed(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Modules beside the workflow file belong to its source."""
    path = author("import sample_helper\n" + simple())
    helper = path.with_name("sample_helper.py")
    helper.write_text("VALUE = 1\n")
    launch = launch_of(path, {})
    helper.write_text("VALUE = 2\n")
    peer = start()
    peer.send(launch)
    assert peer.next(Failed).code == "workflowSourceChanged"
    assert "loaded" not in peer.printed()


def test_another_definition_does_not_run(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The digest of what was loaded must be the launch's."""
    launch = launch_of(author(simple()), {})
    other = launch.model_copy(update={"definition_digest": f"sha256:{'0' * 64}"})
    peer = start()
    peer.send(other)
    assert peer.next(Failed).code == "definitionChanged"
    assert peer.wait() == 0


def test_other_mounts_do_not_run(author: Callable[[str], Path], start: Callable[[], Peer]) -> None:
    """So must the identities of its sources."""
    peer = start()
    peer.send(launch_of(author(simple()), {}).model_copy(update={"mounts": ()}))
    assert peer.next(Failed).code == "definitionChanged"


def test_an_import_that_fails_says_where(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """What worked for the resolver may fail here: the message names the line."""
    text = "if 'PI_WORKFLOWS_WORKER' in os.environ:\n    raise RuntimeError('not here')\n"
    path = author(text + simple())
    peer = start()
    peer.send(launch_of(path, {}))
    failed = peer.next(Failed)
    assert failed.code == "importError"
    assert "not here" in failed.message
    assert str(path) in failed.message


def test_an_import_after_loading_fails_the_node(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A module of the workflow's directory that nobody verified is refused."""
    text = """
@compute
def a(ctx):
    import sample_late
    return 1

workflow = define_workflow("late", input=Input, start="a", nodes={"a": a})
"""
    path = author(text)
    path.with_name("sample_late.py").write_text("print('late')\n")
    peer = start()
    peer.begin(launch_of(path, {}))
    peer.serve()
    (finish,) = of_kind(peer.commands, FinishAttempt)
    assert finish.error is not None
    assert finish.error.code == "lateImport"
    assert "late\n" not in peer.printed()


def test_a_large_input_is_fetched(author: Callable[[str], Path], start: Callable[[], Peer]) -> None:
    """An input that the launch only names is asked for."""
    blob = Blob.json({"n": 5})
    peer = start()
    peer.contents[blob.hex] = blob
    peer.begin(launch_of(author(simple()), None, input_ref=BlobRef.of(blob)))
    peer.serve()
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == [5, 1, 1]


def resumed(*, step_total: int = 3) -> Resume:
    """Return where a run stands whose node `a` was entered and settled twice."""
    return Resume(
        run_revision=12,
        step_total=step_total,
        visits={"a": 2, "b": 4},
        attempts={"a": 3, "b": 6},
        outputs={"a": JsonRef(value="kept")},
        results={},
        last=Last(node_path="a", visit=2, tries=1, outcome="ok"),
    )


def test_a_resumed_run_goes_on_from_its_last_settled_visit(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The route leads to the next visit with the next number; earlier outputs are there."""
    peer = start()
    peer.begin(launch_of(author(simple()), {}, resume=resumed()))
    peer.serve()
    (attempt,) = of_kind(peer.commands, StartAttempt)
    assert (attempt.node_path, attempt.visit, attempt.attempt_number) == ("b", 5, 7)
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == ["kept", 5, 7]


def test_a_lost_visit_goes_on_under_a_new_attempt(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A crash keeps the visit."""
    left = OpenVisit(attempt_id="lost", node_path="b", visit=4, tries=0)
    resume = resumed().model_copy(update={"last": None, "open": left})
    peer = start()
    peer.begin(launch_of(author(simple()), {}, resume=resume))
    peer.serve()
    (attempt,) = of_kind(peer.commands, StartAttempt)
    assert (attempt.node_path, attempt.visit, attempt.attempt_number) == ("b", 4, 7)


def test_a_resume_counts_the_steps_before_it(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """Near the limit a resumed run takes no step too many."""
    peer = start()
    peer.begin(launch_of(author(simple(max_steps=3)), {}, resume=resumed(step_total=3)))
    peer.serve()
    assert not of_kind(peer.commands, StartAttempt)
    (end,) = of_kind(peer.commands, FinishRun)
    assert end.error is not None
    assert end.error.code == "maxSteps"


def test_a_run_whose_route_has_ended_is_only_finished(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """A final node that was settled without the run's end gives the run its output."""
    resume = resumed().model_copy(
        update={
            "outputs": {"b": JsonRef(value="the end")},
            "last": Last(node_path="b", visit=4, tries=1, outcome="ok"),
        }
    )
    peer = start()
    peer.begin(launch_of(author(simple()), {}, resume=resume))
    peer.serve()
    assert [command.command for command in peer.commands] == ["finishRun"]
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == "the end"


@pytest.mark.parametrize(
    "line", [b"{}\n", b"not json\n", frames.encode({"schema": "pi-workflows.client.v1"})]
)
def test_a_launch_of_another_protocol_is_refused(start: Callable[[], Peer], line: bytes) -> None:
    """The runner exits 70 and says why on its diagnostic output."""
    peer = start()
    peer.channel.sendall(line)
    assert peer.wait() == 70
    assert "the launch breaks the protocol" in peer.printed()


def test_a_channel_that_closes_before_the_launch_ends_the_runner(
    start: Callable[[], Peer],
) -> None:
    """Without a server there is nothing to do."""
    peer = start()
    peer.channel.close()
    assert peer.wait() == 70
