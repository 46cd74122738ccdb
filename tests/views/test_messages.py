"""What a run told its session, as its viewers see it."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import NotFound
from pi_workflows.base.limits import INLINE_BYTES_MAX, PAGE_ITEMS_MAX
from pi_workflows.domain.run.control import CancelRun, PauseRun, ResumeRun
from pi_workflows.views.content import content_chunk
from tests.kernel import conversing
from tests.kernel.harness import (
    SESSION,
    Harness,
    ask_agent,
    begin,
    end_turn,
    report_branch,
    start_turn,
    tell_end,
)
from tests.kernel.workflows import TALK
from tests.views.reading import page, view


def shown(bench: Harness, run_id: str = "run-1") -> Any:
    """Return the messages that a run's view has."""
    return view(bench, run_id)["workflowMessages"]


def paged(bench: Harness, cursor: int | None = None, run_id: str = "run-1") -> Any:
    """Return a window of a run's messages."""
    return page(bench, "workflow_messages", cursor, run_id)


def test_each_message_stands_with_what_became_of_it(bench: Harness) -> None:
    """Its text, its place, its entry, and the newest turn for it; a page and the view agree."""
    conversing.asked(bench)
    (told,) = shown(bench)
    assert (told["kind"], told["status"], told["order"]) == ("step", "pending", 1)
    assert told["sourceId"] == conversing.REQUEST
    assert told["content"].startswith("Plan it.\n")
    assert told["contentDigest"] == f"sha256:{Blob.text(told['content']).hex}"
    assert (told["piSessionEntryId"], "turn" in told) == (None, False)
    bench.do(report_branch(conversing.STEP, "entry-1"))
    bench.do(start_turn(conversing.STEP))
    (told,) = shown(bench)
    assert (told["status"], told["piSessionEntryId"]) == ("sent", "entry-1")
    assert (told["turn"]["state"], told["turn"]["endedAt"]) == ("started", None)
    bench.clock.advance_ms(70)
    bench.do(end_turn(conversing.STEP))
    told, reminder = shown(bench)
    assert (told["turn"]["state"], told["turn"]["stopReason"]) == ("ended", "completed")
    assert told["turn"]["endedAt"] - told["turn"]["startedAt"] == 70
    assert reminder["content"].startswith("Your last turn ended without an answer")
    assert paged(bench)["items"] == [told, reminder]


def test_a_stop_of_what_follows_is_shown(bench: Harness) -> None:
    """Of the message about a run's end viewers learn why nothing is launched from it."""
    conversing.told_end(bench)
    assert "recoveryStop" not in shown(bench)[-1]
    bench.do(CancelRun("run-1"))
    assert (shown(bench)[-1]["kind"], shown(bench)[-1]["recoveryStop"]) == ("terminal", "cancelled")


def test_a_long_text_is_referred_to(bench: Harness) -> None:
    """Its content is its run's alone."""
    permit = bench.launch(workflow=TALK, session=SESSION)
    prompt = "x" * INLINE_BYTES_MAX
    bench.do(begin("plan", node_type="agent"), ask_agent("plan", prompt), permit=permit)
    bench.do(bench.start("run-2"))
    reference = shown(bench)[0]["content"]["$artifact"]
    assert reference["mediaType"] == "text/plain"
    with bench.store.snapshot() as read:
        chunk = content_chunk(read, "run-1", reference["path"], 0)
        assert base64.b64decode(chunk.data).decode().startswith(prompt)
        with pytest.raises(NotFound):
            content_chunk(read, "run-2", reference["path"], 0)


def test_a_page_is_a_window_of_a_runs_own_messages(bench: Harness) -> None:
    """However many there are, in the session's order, which counts over all of its runs."""
    for run_id, resumed in (("run-1", 3), ("run-2", PAGE_ITEMS_MAX)):
        permit = bench.launch(run_id, TALK, SESSION)
        first = begin("plan", run_id=run_id, node_type="agent")
        bench.do(first, ask_agent("plan", run_id=run_id), permit=permit)
        for _ in range(resumed):
            bench.do(PauseRun(run_id))
            bench.do(ResumeRun(run_id))
        bench.do(CancelRun(run_id))
        bench.do(tell_end(run_id))
    before, total = 5, PAGE_ITEMS_MAX + 2
    newest = paged(bench, run_id="run-2")
    count = len(newest["items"])
    assert (newest["start"] + count, newest["total"]) == (total, total)
    assert 1 < count < PAGE_ITEMS_MAX
    assert newest["items"] == shown(bench, "run-2")
    assert paged(bench, total - 1, "run-2")["items"] == newest["items"]
    middle = paged(bench, 100, "run-2")
    orders = [item["order"] for item in middle["items"]]
    first_order = before + middle["start"] + 1
    assert orders == [*range(first_order, first_order + len(orders))]
    assert middle["start"] < 100 < middle["start"] + len(orders)
    assert paged(bench, 0, "run-2")["items"][0]["order"] == before + 1
