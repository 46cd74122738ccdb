"""What is shown of a decision: everything that a person needs, and nobody who decided."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_workflows.base import canonical
from pi_workflows.base.errors import NotFound
from pi_workflows.views.content import content_chunk
from pi_workflows.views.decision import deadline_of, deadlines
from pi_workflows.views.facts import ProcessFacts
from pi_workflows.views.run_patch import run_patch
from pi_workflows.views.run_view import run_view
from pi_workflows.views.story import story
from pi_workflows.views.value import Value
from tests.kernel.deciding import (
    DEFAULT,
    MODEL,
    PERSON,
    POLICY,
    RUN,
    asked,
    asks,
    closing,
    decision_of,
    gated,
    given,
)
from tests.kernel.harness import Harness, begin, end
from tests.kernel.rebuilt import assert_rebuilds
from tests.views.following import Follower, decoded
from tests.views.patching import Document


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Harness]:
    """Drive a new database, and compare it with a rebuild from its log afterwards."""
    harness = Harness(tmp_path / "state")
    yield harness
    assert_rebuilds(harness.store)
    harness.store.close()


def seen(bench: Harness) -> bytes:
    """Return the run's view."""
    with bench.store.snapshot() as read:
        return run_view(read, RUN, ProcessFacts(bench.clock.now_ms())).content


def followed(bench: Harness, before: bytes) -> Document:
    """Return the view of now, to which the patches since an earlier one lead."""
    follower = Follower(before)
    with bench.store.snapshot() as read:
        process = ProcessFacts(bench.clock.now_ms())
        patch = run_patch(read, RUN, follower.revision, process)
    assert patch is not None
    follower.take(patch.content)
    now: Document = decoded(seen(bench))
    follower.hold(now)
    return now


def test_a_decision_is_a_part_of_the_state_while_it_is_open(bench: Harness) -> None:
    """Patches bring it, and take it away with its attempt; who decided is told by nothing."""
    permit = bench.launch(workflow=gated(DEFAULT))
    bench.do(begin("gate", node_type="checkpoint"), permit=permit)
    before = seen(bench)
    bench.do(asks(terms=DEFAULT), permit=permit)
    shown = followed(bench, before)["state"]["humanDecision"]
    assert shown["decisionId"] == decision_of()
    assert shown["deadlineAt"] == bench.clock.now_ms() + 600_000
    assert shown["defaultResponse"] == {"choice": "stop"}
    assert [each["id"] for each in shown["choices"]] == ["go", "stop", "replan"]
    assert shown["presentation"]["summary"] == "Version 1 goes out."
    assert "subject" not in shown
    before = seen(bench)
    bench.answer(given("go"), actor=MODEL)
    assert followed(bench, before)["state"]["humanDecision"] == shown
    before = seen(bench)
    bench.do(given("stop", name="s2"), actor=PERSON)
    decided = followed(bench, before)
    made = decided["state"]["humanDecision"]
    assert (made["outcome"], made["provenance"]) == ("accepted", "human")
    assert "operator:key-1" not in canonical.encode(decided).decode()
    permit = bench.relaunch()
    before = seen(bench)
    bench.do(end("gate", {"choice": "stop"}), permit=permit)
    assert "humanDecision" not in followed(bench, before)["state"]


def test_what_a_decision_names_can_be_fetched_for_its_run(bench: Harness) -> None:
    """Presentation and subject belong to the run, and to no other one."""
    asked(bench)
    (row,) = bench.dump("human_decisions")
    bench.do(bench.start("run-2"))
    with bench.store.snapshot() as read:
        for digest in (row[6], row[7], row[8], row[13]):
            assert isinstance(digest, bytes)
            content = read.blob(digest)
            value = Value.of(digest, "application/json", len(content), content)
            assert value is not None
            path = decoded(value.reference())["$artifact"]["path"]
            assert content_chunk(read, RUN, path, 0).complete
            with pytest.raises(NotFound):
                content_chunk(read, "run-2", path, 0)


def test_deadlines_are_those_of_open_decisions(bench: Harness) -> None:
    """One that was made, one way or another, has none any more."""
    asked(bench, DEFAULT)
    with bench.store.snapshot() as read:
        (found,) = deadlines(read, 8)
        assert deadline_of(read, RUN) == found
    assert (found.decision_id, found.run_id) == (decision_of(), RUN)
    bench.clock.advance_ms(600_000)
    bench.do(closing(), actor=POLICY)
    with bench.store.snapshot() as read:
        assert deadlines(read, 8) == []
        assert deadline_of(read, RUN) is None


def test_a_story_tells_who_tried_and_how_it_was_decided(bench: Harness) -> None:
    """A model's answer, the default at the deadline, and whoever came too late."""
    asked(bench, DEFAULT)
    bench.answer(given("go"), actor=MODEL)
    bench.clock.advance_ms(600_000)
    bench.do(closing(), actor=POLICY)
    bench.answer(given("go", name="s2"), actor=PERSON)
    with bench.store.snapshot() as read:
        told = [sentence.text for sentence in story(read, RUN).sentences]
    asking, refused, decided, late = told[-4:]
    assert "only a person may decide it within 10 min, else its default counts" in asking
    assert refused.startswith("A Pi session answered the decision")
    assert refused.endswith("which was refused.")
    assert decided.startswith("A timeout answered gate after 10 min")
    assert decided.endswith("nobody had decided in time.")
    assert late.endswith("which came too late.")
