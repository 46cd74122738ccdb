"""The last good view of a run: what patches do to it, and what no frame can."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProtocolViolation
from pi_workflows.base.limits import PAGE_ITEMS_MAX
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.mirror import RunMirror
from tests.protocol.run_news import (
    PAUSED,
    RUN,
    delta,
    member,
    new_mirror,
    page,
    patch,
    patch_payload,
    run_view,
    snapshot,
    tail,
    unavailable,
)

_SMALL = ("replace", "/runRevision", 8)


def test_there_is_nothing_before_the_first_snapshot() -> None:
    """A mirror without a view is stale, and waits: it has not failed."""
    mirror = RunMirror(RUN)
    assert (mirror.view, mirror.revision, mirror.is_stale) == (None, None, True)
    assert not mirror.needs_watch
    change = mirror.take(snapshot(4))
    assert change == Change(is_snapshot=True, is_display=True)
    assert mirror.view == run_view(4)
    assert (mirror.revision, mirror.is_stale, mirror.stale) == (4, False, frozenset())


def test_a_patch_leads_to_its_revision() -> None:
    """The deltas of several revisions apply in order, and the view names the last one."""
    mirror = new_mirror()
    change = mirror.take(
        patch(
            4,
            6,
            delta(5, "summary/", ("replace", "/runRevision", 8)),
            delta(
                5,
                "graph/",
                ("remove", "/state/currentNode", None),
                ("add", "/state/waitingOn", "b"),
                ("add", "/graphSteps/-", {"nodeId": "a"}),
                index=1,
            ),
            delta(6, "summary/", ("add", "/queue/errorCode", None)),
        )
    )
    assert change == Change(targets={"summary/": 6, "graph/": 5})
    assert (mirror.revision, member(mirror, "revision")) == (6, 6)
    assert member(mirror, "runRevision") == 8
    assert member(mirror, "state") == {
        "status": "running",
        "waitingOn": "b",
        "steps": [],
        "outputs": {"a": 1},
    }
    assert member(mirror, "queue") == {"status": "running", "errorCode": None}
    assert member(mirror, "graphSteps") == [{"nodeId": "a"}]


def test_an_old_view_stays_as_it_was() -> None:
    """Whoever shows the view of a moment keeps that moment, and shares what did not change."""
    mirror = new_mirror()
    old = mirror.view
    assert old is not None
    before = copy.deepcopy(old)
    mirror.take(patch(4, 5, tail(5, 4, 3), display=PAUSED))
    assert old == before
    assert mirror.view is not old
    assert member(mirror, "session") is old["session"]
    assert member(mirror, "state") is old["state"]


def test_a_process_fact_changes_what_people_are_told() -> None:
    """A frame without deltas at the same revision brings the display and nothing else."""
    mirror = new_mirror()
    change = mirror.take(patch(4, 4, display=PAUSED, live=False))
    assert change == Change(is_display=True)
    assert mirror.view == run_view(4, display=PAUSED, live=False)
    assert mirror.take(patch(4, 4, display=PAUSED, live=False)) == Change()


def test_a_duplicate_is_harmless() -> None:
    """A patch that was applied changes nothing again but what people are told, which is newer."""
    mirror = new_mirror()
    frame = patch(4, 5, tail(5, 4, 3))
    mirror.take(frame)
    view = mirror.view
    assert mirror.take(frame) == Change()
    assert mirror.view is view
    mirror.take(patch(5, 6, tail(6, 5, 4)))
    assert mirror.take(patch(4, 5, tail(5, 4, 3), display=PAUSED)) == Change(is_display=True)
    assert member(mirror, "tracePage") == page(5)
    assert (mirror.revision, mirror.is_stale) == (6, False)


@pytest.mark.parametrize(("first", "last"), [(5, 6), (3, 5), (6, 6)])
def test_a_gap_keeps_the_last_good_view(first: int, last: int) -> None:
    """A patch to another revision than ours brings the display, and a snapshot is needed."""
    mirror = new_mirror()
    deltas = [delta(number, "summary/", _SMALL) for number in range(first + 1, last + 1)]
    change = mirror.take(patch(first, last, *deltas, display=PAUSED))
    assert change == Change(is_display=True, fault="revisionGap")
    assert mirror.view == run_view(4, display=PAUSED)
    assert (mirror.revision, mirror.is_stale, mirror.needs_watch) == (4, True, True)


def _changed(event: Event, **changes: Any) -> Event:
    """Return an event with other members in its payload."""
    assert isinstance(event.payload, dict)
    payload: Json = {**event.payload, **changes}
    return event.model_copy(update={"payload": payload})


_GOOD = patch(4, 5, delta(5, "summary/", _SMALL))

_HOSTILE: dict[str, tuple[Event, str]] = {
    "another run in the payload": (_changed(_GOOD, runId="other"), "wrongRun"),
    "another run in the envelope": (_GOOD.model_copy(update={"run_id": "other"}), "wrongRun"),
    "no run in the envelope": (_GOOD.model_copy(update={"run_id": None}), "wrongRun"),
    "another revision in the envelope": (
        _GOOD.model_copy(update={"revision": 6}),
        "revisionMismatch",
    ),
    "no object": (_GOOD.model_copy(update={"payload": [1]}), "eventInvalid"),
    "another schema": (_changed(_GOOD, schema="pi-workflows.run-patch.v2"), "eventInvalid"),
    "an unknown member": (_changed(_GOOD, more=1), "eventInvalid"),
    "a revision that is text": (_changed(_GOOD, fromRevision="4"), "eventInvalid"),
    "a revision below zero": (_changed(_GOOD, fromRevision=-1), "eventInvalid"),
    "a display that is text": (_changed(_GOOD, display="running"), "eventInvalid"),
    "deltas that are no array": (_changed(_GOOD, deltas={}), "eventInvalid"),
    "a revision that goes back": (
        _changed(patch(6, 5), fromRevision=6),
        "deltasDisordered",
    ),
    "no deltas to a new revision": (patch(4, 5), "deltasDisordered"),
    "a delta of no new revision": (
        patch(4, 4, delta(4, "summary/", _SMALL)),
        "deltasDisordered",
    ),
    "a revision left out": (
        patch(4, 6, delta(6, "summary/", _SMALL)),
        "deltasDisordered",
    ),
    "a revision too many": (
        patch(4, 5, delta(5, "summary/", _SMALL), delta(6, "summary/", _SMALL)),
        "deltasDisordered",
    ),
    "revisions out of order": (
        patch(4, 6, delta(6, "summary/", _SMALL), delta(5, "summary/", _SMALL)),
        "deltasDisordered",
    ),
    "an index left out": (
        patch(4, 5, delta(5, "summary/", _SMALL), delta(5, "summary/", _SMALL, index=2)),
        "deltasDisordered",
    ),
    "an index that is not first": (
        patch(4, 5, delta(5, "summary/", _SMALL, index=1)),
        "deltasDisordered",
    ),
    "an index twice": (
        patch(4, 5, delta(5, "summary/", _SMALL), delta(5, "summary/", _SMALL)),
        "deltasDisordered",
    ),
    "an unknown type": (patch(4, 5, delta(5, "other/", _SMALL)), "eventInvalid"),
    "an unknown key": (patch(4, 5, delta(5, "summary/other", _SMALL)), "targetUnknown"),
    "an unknown operation": (
        patch(4, 5, delta(5, "summary/", ("test", "/runRevision", 7))),
        "eventInvalid",
    ),
    "a bad path": (patch(4, 5, delta(5, "summary/", ("replace", "x", 1))), "pointerInvalid"),
    "a member that is not there": (
        patch(4, 5, delta(5, "graph/", ("remove", "/state/waitingOn", None))),
        "memberMissing",
    ),
    "a huge index": (
        patch(4, 5, delta(5, "graph/", ("add", f"/graphSteps/{10**400}", 1))),
        "memberMissing",
    ),
    "the root": (patch(4, 5, delta(5, "summary/", ("replace", "", {}))), "pathForbidden"),
    "the run's name": (
        patch(4, 5, delta(5, "summary/", ("replace", "/runId", "x"))),
        "pathForbidden",
    ),
    "what people are told": (
        patch(4, 5, delta(5, "graph/", ("replace", "/display/status", "paused"))),
        "pathForbidden",
    ),
    "something beside its target": (
        patch(4, 5, delta(5, "replay/steps:reload", ("replace", "/state/steps", []))),
        "pathForbidden",
    ),
    "a reload that changes something": (
        patch(4, 5, delta(5, "inspector/aggregates:reload", ("add", "/outputTotal", 1))),
        "pathForbidden",
    ),
    "a session member taken away": (
        patch(4, 5, delta(5, "conversation/binding", ("remove", "", None))),
        "pathForbidden",
    ),
    "a tail that changes an item": (
        patch(4, 5, delta(5, "timeline/trace:tail", ("replace", "/items/0", 1))),
        "tailInvalid",
    ),
    "a tail whose total is text": (
        patch(4, 5, delta(5, "timeline/trace:tail", ("replace", "/total", "5"))),
        "pageInvalid",
    ),
    "a snapshot of another run": (_changed(snapshot(5), runId="other"), "wrongRun"),
    "a snapshot that is none": (_changed(snapshot(5), schema="x"), "viewInvalid"),
    "a snapshot without a revision": (_changed(snapshot(5), revision=True), "viewInvalid"),
    "a snapshot of two revisions": (_changed(snapshot(5), revision=6), "revisionMismatch"),
    "a list": (_GOOD.model_copy(update={"event": EventKind.RUNS}), "eventUnknown"),
    "a failure that is none": (
        _GOOD.model_copy(update={"event": EventKind.UNAVAILABLE}),
        "eventInvalid",
    ),
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_a_hostile_frame_leaves_the_last_good_view(name: str) -> None:
    """Whatever is wrong with a frame, the view before it stays, marked, until a snapshot comes."""
    event, code = _HOSTILE[name]
    mirror = new_mirror()
    view = mirror.view
    before = copy.deepcopy(view)
    assert mirror.take(event) == Change(fault=code)
    assert mirror.view is view
    assert view == before
    assert (mirror.revision, mirror.is_stale, mirror.needs_watch) == (4, True, True)
    mirror.take(snapshot(9))
    assert (mirror.view, mirror.is_stale, mirror.needs_watch) == (run_view(9), False, False)


def test_a_patch_applies_whole_or_not_at_all() -> None:
    """A fault in the last delta leaves the first one out too."""
    mirror = new_mirror()
    view = mirror.view
    bad = delta(6, "summary/", ("remove", "/queue/other", None))
    mirror.take(patch(4, 6, delta(5, "summary/", _SMALL), bad, display=PAUSED))
    assert mirror.view is view


def test_no_patch_applies_before_the_snapshot_that_is_needed() -> None:
    """After a fault the display follows, and the rest waits for the snapshot."""
    mirror = new_mirror()
    mirror.take(patch(4, 5))
    assert mirror.take(patch(4, 5, delta(5, "summary/", _SMALL), display=PAUSED)) == Change(
        is_display=True
    )
    assert mirror.view == run_view(4, display=PAUSED)
    assert mirror.needs_watch


def test_a_patch_before_the_first_snapshot_is_a_gap() -> None:
    """Without a view there is nothing that a patch could change."""
    mirror = RunMirror(RUN)
    assert mirror.take(_GOOD) == Change(fault="revisionGap")
    assert (mirror.view, mirror.needs_watch) == (None, True)


# --- the connection ------------------------------------------------------------------------------


def test_a_lost_connection_makes_the_view_one_to_look_at() -> None:
    """Until something current came after a loss, the view is for showing only."""
    for event in (patch(4, 4), patch(4, 5, delta(5, "summary/", _SMALL)), snapshot(4)):
        mirror = new_mirror()
        change = mirror.take(unavailable("connection_lost"))
        assert change.failure is not None
        assert not change.is_end
        assert (mirror.is_stale, mirror.needs_watch) == (True, False)
        mirror.take(patch(3, 3))
        assert mirror.is_stale
        change = mirror.take(event)
        assert change.is_restored != change.is_snapshot
        assert not mirror.is_stale


def test_a_subscription_ends_for_good() -> None:
    """Every other reason is an end; the last view stays."""
    mirror = new_mirror()
    change = mirror.take(unavailable("run_removed"))
    assert change.is_end
    assert mirror.view == run_view(4)
    assert mirror.is_stale


def test_the_whole_view_may_be_fetched() -> None:
    """An answer of `view.run.get` refreshes every section; an older one is nobody's news."""
    mirror = new_mirror()
    mirror.take(patch(4, 5, delta(5, "inspector/aggregates:reload")))
    assert mirror.take_view(run_view(4)) == Change()
    assert mirror.stale == {"aggregates"}
    assert mirror.take_view(run_view(5, stepTotal=9)).is_snapshot
    assert (mirror.stale, mirror.revision) == (frozenset(), 5)
    with pytest.raises(ProtocolViolation):
        mirror.take_view(run_view(6) | {"runId": "other"})
    mirror.take(unavailable("connection_lost"))
    mirror.take_view(run_view(7))
    assert mirror.is_stale


# --- changes together ----------------------------------------------------------------------------


def test_changes_add_up() -> None:
    """One change stands for several; a snapshot replaces what came before it."""
    first = Change(targets={"summary/": 5, "graph/": 5}, stale=frozenset({"steps"}), fault="x")
    second = Change(is_display=True, targets={"summary/": 6}, stale=frozenset({"trace"}))
    both = first.then(second)
    assert both.targets == {"summary/": 6, "graph/": 5}
    assert both.stale == {"steps", "trace"}
    assert (both.is_display, both.fault, both.is_snapshot) == (True, "x", False)
    whole = Change(is_snapshot=True, is_display=True)
    assert first.then(whole) == whole
    assert whole.then(second).is_snapshot
    assert second.then(Change()) == second


def test_a_failure_counts_until_it_is_over() -> None:
    """Whoever looks late learns that the view is old, unless it is current again."""
    failure = new_mirror().take(unavailable("connection_lost"))
    assert failure.then(Change(is_display=True)).failure == failure.failure
    restored = failure.then(Change(is_restored=True))
    assert (restored.failure, restored.is_restored) == (None, True)
    assert not restored.then(failure).is_restored
    assert not restored.then(Change(fault="revisionGap")).is_restored
    assert restored.then(Change(is_display=True)).is_restored


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.booleans()), max_size=12))
def test_patches_lead_where_a_snapshot_would(steps: list[tuple[int, int, bool]]) -> None:
    """A view kept current by coalesced and repeated frames is the newest snapshot's."""
    mirror = new_mirror(1, tracePage=page(PAGE_ITEMS_MAX - 5))
    total, revision, base = PAGE_ITEMS_MAX - 5, 1, 1
    queue: dict[str, Json] = {"status": "running"}
    waiting: list[Json] = []
    for items, status, is_sent in steps:
        revision += 1
        numbers: list[Json] = list(range(total, total + items))
        total += items
        queue = {"status": status}
        waiting += [
            tail(revision, total, *numbers),
            delta(revision, "summary/", ("replace", "/queue", queue), index=1),
        ]
        if is_sent:
            frame = patch(base, revision, *waiting)
            mirror.take(frame)
            mirror.take(frame)
            base, waiting = revision, []
    mirror.take(patch(base, revision, *waiting))
    first = max(0, total - PAGE_ITEMS_MAX)
    assert mirror.view == run_view(revision, tracePage=page(total, first), queue=queue)
    assert not mirror.is_stale


@given(
    st.sampled_from(["runId", "fromRevision", "toRevision", "display", "live", "deltas", "schema"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
        max_leaves=5,
    ),
)
def test_no_payload_gets_past_the_model(member: str, value: Json) -> None:
    """A payload with anything anywhere changes the view as its model says, or not at all."""
    mirror = new_mirror()
    view = mirror.view
    payload: Json = patch_payload(4, 5, delta(5, "summary/", _SMALL)) | {member: value}
    change = mirror.take(_GOOD.model_copy(update={"payload": payload}))
    assert mirror.view is view or change.fault in (None, "revisionGap")
    assert mirror.needs_watch == (change.fault is not None)
