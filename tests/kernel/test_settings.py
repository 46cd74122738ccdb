"""Settings of a run: opened once, changed in order, bound to attempts, chosen by anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pi_workflows.base.blob import Blob
from pi_workflows.base.errors import Outcome
from pi_workflows.domain.fact import Actor
from pi_workflows.domain.run.control import CancelRun, PauseRun
from pi_workflows.domain.settings.change import ChangeSettings
from pi_workflows.kernel.order import Answer
from tests.kernel.harness import Harness, begin, end, finish
from tests.kernel.preferring import (
    FIRST,
    MERGED,
    SCOPE,
    begin_bound,
    change,
    open_scope,
    value_of,
)
from tests.kernel.rebuilt import assert_rebuilds


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Harness]:
    """A new database, which every test leaves rebuildable and without a violation."""
    harness = Harness(tmp_path)
    yield harness
    assert_rebuilds(harness.store)
    harness.store.close()


def number_of(bench: Harness) -> int:
    """Return the public change number: the revision of the settings' resource."""
    found = next(row[3] for row in bench.dump("resources") if row[2] == SCOPE)
    assert isinstance(found, int)
    return found


def test_settings_begin_at_change_zero(bench: Harness) -> None:
    """Their resource is there from the run's own event, at revision 0 and without an event."""
    permit = bench.launch(workflow=MERGED)
    answer = bench.do(open_scope(), permit=permit)
    assert [event.fact.type for event in answer.events] == ["run.settings_opened"]
    assert number_of(bench) == 0
    (row,) = bench.dump("workflow_settings")
    assert row[:1] == (SCOPE,)
    assert row[2:6] == ("run-1", "run-1", "", 1)


@pytest.mark.parametrize(
    ("mount", "invocation"), [("", 2), ("", 0), ("elsewhere", 1)], ids=["later", "none", "mount"]
)
def test_only_the_settings_that_are_due_open(bench: Harness, mount: str, invocation: int) -> None:
    """A runner opens those of the workflow that it enters, once, and no others."""
    permit = bench.launch(workflow=MERGED)
    answer = bench.answer(open_scope(mount=mount, invocation=invocation), permit=permit)
    assert answer.code == "settingsMismatch"


def test_settings_open_once(bench: Harness) -> None:
    """The root is entered once in a run."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), permit=permit)
    assert bench.answer(open_scope(invocation=2), permit=permit).code == "settingsMismatch"


def test_an_attempt_needs_the_settings_of_its_workflow(bench: Harness) -> None:
    """None begins without them, under others, or where its workflow has none."""
    permit = bench.launch(workflow=MERGED)
    assert bench.answer(begin("choose"), permit=permit).code == "settingsMismatch"
    bench.do(open_scope(), permit=permit)
    assert bench.answer(begin("choose"), permit=permit).code == "settingsMismatch"
    other = bench.launch("run-2")
    answer = bench.answer(begin_bound("one"), permit=permit)
    assert answer.code == "routeMismatch"
    assert bench.answer(begin("one", run_id="run-2"), permit=other).code is None


def test_an_attempt_is_bound_to_the_newest_value(bench: Harness) -> None:
    """A runner that knows an older one is told the value that its attempt has."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), permit=permit)
    assert bench.do(change(1)).receipt is not None
    answer = bench.do(begin_bound("choose", 0), permit=permit)
    value = Blob.json(value_of(1))
    assert answer.values == {
        "scopeId": SCOPE,
        "changeNumber": 1,
        "hash": value.hex,
    }
    (row,) = bench.dump("node_attempts")
    assert row[11:14] == (SCOPE, 1, value.digest)


def test_who_knows_the_newest_value_is_told_nothing(bench: Harness) -> None:
    """An answer has values only when there is something to tell."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), permit=permit)
    assert bench.do(begin_bound("choose"), permit=permit).values is None


def test_a_binding_is_frozen(bench: Harness) -> None:
    """A change while an attempt works is for the next one."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), begin_bound("choose"), permit=permit)
    bench.do(end("choose", {"route": "merge"}), permit=permit)
    bench.do(begin_bound("merge"), permit=permit)
    bench.do(change(1))
    bench.do(end("merge", 1), permit=permit)
    assert [row[12] for row in bench.dump("node_attempts")] == [0, 0]


def test_a_patch_its_value_and_its_number_are_one_event(bench: Harness) -> None:
    """What binds attempts changes with the row that says why."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), permit=permit)
    before = bench.revision()
    answer = bench.do(change(1), actor=Actor("human", "operator:key"))
    assert [event.fact.type for event in answer.events] == ["settings.changed"]
    assert answer.revision == 1 == number_of(bench)
    assert bench.revision() == before
    (row,) = bench.dump("workflow_setting_changes")
    assert row[2:7] == ("request-1", 1, "human", "operator:key", "client")
    (scope,) = bench.dump("workflow_settings")
    assert scope[7] == row[9] == Blob.json(value_of(1)).digest


def test_changes_are_numbered_in_their_order(bench: Harness) -> None:
    """Each begins from the value before it."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), permit=permit)
    for number in (1, 2, 3):
        bench.do(change(number))
    rows = sorted(bench.dump("workflow_setting_changes"), key=lambda row: str(row[3]))
    assert [row[3] for row in rows] == [1, 2, 3]
    assert [row[8] for row in rows] == [Blob.json(value_of(each)).digest for each in (0, 1, 2)]


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_changes_judged_by_one_value_one_wins(bench: Harness, first: int) -> None:
    """Whoever comes second is told so, whichever it is, and nothing of it remains."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), permit=permit)
    rivals = [change(1, request="one"), change(1, request="other")]
    bench.do(rivals[first])
    lost = bench.answer(rivals[1 - first])
    assert (lost.outcome, lost.code) == (Outcome.CONFLICT, "settingsChanged")
    assert number_of(bench) == 1


def test_two_changes_of_one_group_are_decided_one_after_the_other(bench: Harness) -> None:
    """Together in one transaction is no different."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), permit=permit)
    orders = tuple(bench.order(change(1, request=name)) for name in ("one", "other"))
    results = bench.kernel.commit(orders, bench.clock.now_ms())
    assert [isinstance(each, Answer) and each.code for each in results] == [
        None,
        "settingsChanged",
    ]


def test_what_was_read_may_have_to_be_the_newest(bench: Harness) -> None:
    """An expected change number that is not the settings' own is a conflict."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), permit=permit)
    bench.do(change(1, expected=0))
    assert bench.answer(change(2, expected=0)).code == "settingsChanged"
    assert bench.do(change(2, expected=1)).outcome is Outcome.ACCEPTED


def test_a_repeated_request_adopts_its_change(bench: Harness) -> None:
    """The same under the same name is done once; something else under it is refused."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), permit=permit)
    bench.do(change(1))
    bench.do(change(2))
    again = bench.do(change(1))
    assert again.outcome is Outcome.ADOPTED
    assert again.receipt is not None
    assert b'"changeNumber":1' in again.receipt
    assert bench.answer(change(3, request="request-1")).code == "requestReused"
    assert number_of(bench) == 2


def test_what_changes_nothing_is_no_change(bench: Harness) -> None:
    """A patch that leads to the value that is there is adopted, without an event."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), permit=permit)
    same = ChangeSettings("run-1", SCOPE, "again", Blob.json([]), 0, Blob.json(FIRST))
    answer = bench.do(same)
    assert (answer.outcome, answer.events, number_of(bench)) == (Outcome.ADOPTED, (), 0)


@pytest.mark.parametrize("is_first", [True, False], ids=["change-first", "end-first"])
def test_a_change_races_the_end_of_its_run(bench: Harness, *, is_first: bool) -> None:
    """Before the end it counts, after it it is refused."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), permit=permit)
    orders = [bench.order(change(1)), bench.order(CancelRun("run-1"))]
    results = bench.kernel.commit(tuple(orders if is_first else orders[::-1]), bench.clock.now_ms())
    codes = {isinstance(each, Answer) and each.code for each in results}
    assert codes == ({None} if is_first else {None, "runTerminal"})
    assert number_of(bench) == int(is_first)


def test_a_paused_run_takes_changes(bench: Harness) -> None:
    """They are for whatever begins after it is resumed."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), permit=permit)
    bench.do(PauseRun("run-1"))
    assert bench.do(change(1)).outcome is Outcome.ACCEPTED


@pytest.mark.parametrize("is_first", [True, False], ids=["change-first", "route-first"])
def test_a_settings_route_races_a_change(bench: Harness, *, is_first: bool) -> None:
    """A choice counts when nothing changed until it is committed; else the visit begins again."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), begin_bound("choose"), permit=permit)
    chosen = bench.order(end("choose", {"route": "leave"}), permit=permit)
    orders = [bench.order(change(1)), chosen]
    results = bench.kernel.commit(tuple(orders if is_first else orders[::-1]), bench.clock.now_ms())
    route = results[1] if is_first else results[0]
    assert isinstance(route, Answer)
    kinds = [event.fact.type for event in route.events]
    if not is_first:
        assert (kinds, route.values) == (["attempt.settled"], None)
        return
    value = Blob.json(value_of(1))
    assert kinds == ["attempt.status_changed"]
    assert isinstance(route.values, dict)
    assert route.values["hash"] == value.hex
    again = bench.do(begin_bound("choose", 1, attempt=2), permit=permit)
    assert again.values is None
    bench.do(end("choose", {"route": "merge"}, number=2), permit=permit)
    bench.do(begin_bound("merge", 1), permit=permit)
    bench.do(end("merge", 1), permit=permit)
    bench.do(finish(1), permit=permit)
    # The stale choice is no step: it does not count in `maxSteps`, and nothing was routed by it.
    assert len(bench.dump("run_steps")) == 2
    rows = sorted(bench.dump("node_attempts"), key=lambda row: (str(row[2]), str(row[4])))
    assert [(row[2], row[3], row[6]) for row in rows] == [
        ("choose", 1, "interrupted"),
        ("choose", 1, "completed"),
        ("merge", 1, "completed"),
    ]


def test_only_a_settings_route_begins_again(bench: Harness) -> None:
    """What another node made of the older value stands."""
    permit = bench.launch(workflow=MERGED)
    bench.do(open_scope(), begin_bound("choose"), permit=permit)
    bench.do(end("choose", {"route": "leave"}), permit=permit)
    bench.do(begin_bound("leave"), permit=permit)
    bench.do(change(1))
    answer = bench.do(end("leave", 1), permit=permit)
    assert [event.fact.type for event in answer.events] == ["attempt.settled"]
