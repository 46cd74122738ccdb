"""Progress: committed before the author goes on, bounded in rate, refused when the node is over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pi_workflows.protocol.proposals import Failure, FinishAttempt, FinishRun, Update
from tests.runner.peer import Peer, launch_of, of_kind

pytestmark = pytest.mark.slow

WORKFLOW = """
@compute
DEF work(ctx):
    BODY

workflow = define_workflow("publishing", input=Input, start="work", nodes={"work": work})
"""
ASYNC = "await ctx.publish_update"
SYNC = "ctx.publish_update_from_thread"


def publishing(body: str, define: str = "async def") -> str:
    """Return a workflow whose node publishes."""
    return WORKFLOW.replace("DEF", define).replace("BODY", body.replace("\n", "\n    "))


@pytest.mark.parametrize(("define", "publish"), [("async def", ASYNC), ("def", SYNC)])
def test_an_update_is_committed_before_the_author_goes_on(
    author: Callable[[str], Path], start: Callable[[], Peer], define: str, publish: str
) -> None:
    """Each update is a proposal of its own, answered before the next, and a copy."""
    body = f"""
data = {{"items": [1]}}
{publish}(Update("files", data))
data["items"].append(2)
print("published", flush=True)
{publish}(Progress(completed=1, total=2, unit="files"), key="second")
return 1
"""
    peer = start()
    peer.begin(launch_of(author(publishing(body, define)), {}))
    peer.accept(peer.propose())
    first = peer.propose()
    assert [command.command for command in first.commands] == ["update"]
    assert "published" not in peer.printed()
    peer.accept(first)
    peer.serve()
    files, progress = of_kind(peer.commands, Update)
    assert (files.type, files.key, files.data) == ("files", "node:work", {"items": [1]})
    assert (progress.type, progress.key) == ("progress", "second")
    assert of_kind(peer.commands, FinishRun)[0].outcome == "completed"


def test_a_refused_update_is_the_authors_to_handle(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """The refusal raises in the function; the run goes on."""
    body = f"""
try:
    {ASYNC}(Update("files", {{}}))
except Exception as error:
    return [type(error).__name__, error.reason_code, str(error)]
"""
    peer = start()
    peer.begin(launch_of(author(publishing(body)), {}))
    peer.accept(peer.propose())
    detail = Failure(code="updateKeys", message="too many")
    peer.answer(peer.propose(), "rejected", detail=detail)
    peer.serve()
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == ["Refused", "updateKeys", "too many"]


def test_updates_beyond_the_rate_are_refused_and_not_queued(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """After a burst of a hundred the next one raises without a proposal."""
    body = f"""
for n in range(200):
    try:
        {ASYNC}(Update("files", {{"n": n}}))
    except Exception as error:
        return [n, error.reason_code]
"""
    peer = start()
    peer.begin(launch_of(author(publishing(body)), {}))
    peer.serve()
    (end,) = of_kind(peer.commands, FinishRun)
    output = peer.value(end.output)
    assert isinstance(output, list)
    count, code = output
    assert isinstance(count, int)
    assert code == "updateRate"
    # A second or so of refill at most.
    assert 100 <= count < 160
    assert len(of_kind(peer.commands, Update)) == count


def test_an_update_of_a_node_that_is_over_is_refused(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """What an earlier attempt left running can no longer publish."""
    text = """
kept = []

@compute
def early(ctx):
    kept.append(ctx)
    return 1

@compute
async def late(ctx):
    try:
        await kept[0].publish_update(Update("files", {}))
    except Exception as error:
        return error.reason_code

workflow = define_workflow("publishing", input=Input, start="early",
    nodes={"early": early, "late": late}, edges=[edge("early", "late")])
"""
    peer = start()
    peer.begin(launch_of(author(text), {}))
    peer.serve()
    (end,) = of_kind(peer.commands, FinishRun)
    assert peer.value(end.output) == "attemptEnded"
    assert not of_kind(peer.commands, Update)


def test_an_update_that_is_not_allowed_fails_like_any_error(
    author: Callable[[str], Path], start: Callable[[], Peer]
) -> None:
    """An unknown form is refused before anything is sent."""
    peer = start()
    peer.begin(launch_of(author(publishing(f'{ASYNC}(Update("Bad Type", {{}}))')), {}))
    peer.serve()
    (finish,) = of_kind(peer.commands, FinishAttempt)
    assert finish.error is not None
    assert finish.error.code == "updateTypeInvalid"
