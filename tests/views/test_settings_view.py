"""Settings and follow-ups as people see them, and that their watchers hear of every change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.domain.attempt.progress import RecordUpdate
from pi_workflows.domain.follow_up.queue import RemoveFollowUp
from pi_workflows.domain.message.branch import ReportBranch
from pi_workflows.domain.run.control import CancelRun
from pi_workflows.domain.settings.change import ChangeSettings
from pi_workflows.kernel.order import Order
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.pages import run_page
from pi_workflows.views.run_patch import run_patch
from pi_workflows.views.run_view import run_view
from pi_workflows.views.story import story
from pi_workflows.views.track import track_estimate
from tests.kernel import preferring, queueing
from tests.kernel.harness import Harness, begin, end
from tests.kernel.preferring import MERGED, SCOPE, begin_bound, change, open_scope, value_of
from tests.kernel.queueing import RUN, SESSION, key_of, launched, message_of, queue
from tests.views.following import Follower, decoded
from tests.views.patching import Document, differences


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Harness]:
    """A new database."""
    harness = Harness(tmp_path)
    yield harness
    harness.store.close()


def view(bench: Harness) -> bytes:
    """Return the run's view as it is sent."""
    with bench.store.snapshot() as read:
        return run_view(read, RUN, ProcessFacts(bench.clock.now_ms())).content


def shown(bench: Harness) -> Document:
    """Return the run's view."""
    document: Document = decoded(view(bench))
    return document


def heard(bench: Harness, follower: Follower) -> None:
    """Let a follower take what happened, and hold it to the view of now."""
    with bench.store.snapshot() as read:
        patch = run_patch(read, RUN, follower.revision, ProcessFacts(bench.clock.now_ms()))
    assert patch is not None
    follower.take(patch.content)
    assert differences(follower.reader.view, shown(bench), follower.reader.stale) == []


@pytest.mark.parametrize("event_type", [*preferring.SCENES, *queueing.SCENES])
def test_watchers_hear_of_each_event(bench: Harness, event_type: str) -> None:
    """The view before it and its patch are the view after it."""
    scenes: dict[str, Callable[[Harness], Order]] = {**preferring.SCENES, **queueing.SCENES}
    order = scenes[event_type](bench)
    follower = Follower(view(bench))
    bench.submit(order)
    heard(bench, follower)


def test_settings_are_shown_with_their_rules_and_changes(bench: Harness) -> None:
    """The newest eight changes, in order; what a patch did is a reference when it is long."""
    permit = bench.launch(workflow=MERGED)
    assert shown(bench)["settingsScopes"] == []
    bench.do(open_scope(), permit=permit)
    for number in range(1, 11):
        bench.do(change(number))
    long = ChangeSettings(
        RUN, SCOPE, "long", Blob.json([{"op": "test", "path": "x" * 2_000}]), 10, Blob.json("new")
    )
    bench.do(long)
    document = shown(bench)
    (item,) = document["settingsScopes"]
    assert (document["settingsStart"], document["settingsTotal"]) == (0, 1)
    assert (item["scopeId"], item["mountPath"], item["invocation"]) == (SCOPE, "", 1)
    assert (item["changeNumber"], item["value"], item["initial"]) == (11, "new", value_of(0))
    assert item["paths"] == [
        {"pointer": "/merge", "read": [], "add": [], "remove": [], "replace": ["human"]}
    ]
    assert [each["changeNumber"] for each in item["changes"]] == list(range(4, 12))
    assert set(item["changes"][-1]["patch"]) == {"$artifact"}
    with bench.store.snapshot() as read:
        assert run_page(read, RUN, "settings", None).total == 1


def test_follow_ups_are_shown_in_order_with_what_became_of_them(bench: Harness) -> None:
    """Queued, sent, removed or cancelled; those that do not come say why."""
    launched(bench)
    follower = Follower(view(bench))
    for name in ("a", "b", "c"):
        bench.do(queue(name))
    bench.do(RemoveFollowUp(RUN, key_of("b")))
    heard(bench, follower)
    bench.do(
        ReportBranch(
            RUN, SESSION, message_of("c"), "entry", is_idle=False, has_pending_messages=False
        )
    )
    heard(bench, follower)
    states = [item["state"] for item in shown(bench)["followUpQueue"]["items"]]
    assert states == ["queued", "removed", "sent"]
    bench.do(CancelRun(RUN))
    heard(bench, follower)
    first, second, _ = shown(bench)["followUpQueue"]["items"]
    assert (first["order"], first["state"], first["prompt"]) == (1, "cancelled", "Now do a.")
    assert (first["reason"], second["reason"]) == (
        "the run ended: cancelled",
        "removed (control)",
    )


def test_a_story_tells_who_changed_what(bench: Harness) -> None:
    """Settings, choices that did not count and follow-ups are told in their order."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), begin_bound("choose"), permit=permit)
    bench.do(change(1))
    bench.do(end("choose", {"route": "leave"}), permit=permit)
    bench.do(begin_bound("choose", 1, attempt=2), permit=permit)
    bench.do(end("choose", {"route": "leave"}, number=2), permit=permit)
    with bench.store.snapshot() as read:
        texts = [sentence.text for sentence in story(read, RUN).sentences]
    assert any("got their first value" in text for text in texts)
    assert any("changed the settings: change 1" in text for text in texts)
    assert any("it chooses again" in text for text in texts)


def test_a_track_is_estimated_of_what_was_published(bench: Harness) -> None:
    """Under its key, over all of its run, by the times at which it was recorded."""
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    attempt_id = begin("one").attempt_id
    for count in range(0, 60, 10):
        data: Json = {"status": "running", "unit": "files", "completed": count, "total": 100}
        update = RecordUpdate(RUN, attempt_id, "progress", "copy", Blob.json(data))
        bench.do(update, permit=permit)
        bench.clock.advance_ms(1_000)
    with bench.store.snapshot() as read:
        found = track_estimate(read, RUN, "copy")
        assert track_estimate(read, RUN, "other") is None
    assert found is not None
    assert (found.finish_ms, found.confidence) == (bench.clock.now_ms() + 4_000, "high")
    assert found.document()["source"] == "rate"
