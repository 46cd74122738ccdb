"""Run views and patches made by hand, and the events that carry them."""

from __future__ import annotations

from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.mirror import RunMirror
from pi_workflows.protocol.views import FailureReason, SubscriptionFailure

RUN: Final = "build-1"
RUNNING: Final[dict[str, Json]] = {"status": "running"}
PAUSED: Final[dict[str, Json]] = {"status": "paused"}


def page(total: int, start: int = 0) -> dict[str, Json]:
    """Return a window whose items are their own numbers, up to the end of the sequence."""
    items: list[Json] = list(range(start, total))
    return {"start": start, "total": total, "items": items}


def run_view(revision: int, **members: Json) -> dict[str, Json]:
    """Return a run view with the members that deltas are about."""
    return {
        "schema": "pi-workflows.run-view.v1",
        "runId": RUN,
        "revision": revision,
        "runRevision": 7,
        "display": RUNNING,
        "live": True,
        "possiblyInterrupted": False,
        "queue": {"status": "running"},
        "manifest": {"status": "running"},
        "state": {"status": "running", "currentNode": "a", "steps": [], "outputs": {"a": 1}},
        "workflow": {"nodes": {}},
        "graphSteps": [],
        "graphCursor": 0,
        "stepTotal": 0,
        "tracePage": page(3),
        "session": {
            "entryPage": page(1),
            "eventPage": page(2),
            "capture": None,
            "binding": {"piSessionId": "s"},
        },
        "updates": [],
        "updateStart": 0,
        "updateTotal": 0,
        **members,
    }


def snapshot(revision: int, **members: Json) -> Event:
    """Return the event that brings a whole view."""
    return Event(
        subscription_id="subscription-1",
        event=EventKind.RUN_SNAPSHOT,
        payload=run_view(revision, **members),
        revision=revision,
        run_id=RUN,
    )


def delta(
    revision: int, target: str, *operations: tuple[str, str, Json], index: int = 0
) -> dict[str, Json]:
    """Return a delta; a target is `type/key`, an operation its name, path and value."""
    kind, _, key = target.partition("/")
    patch: list[Json] = []
    for op, path, value in operations:
        members: dict[str, Json] = {"op": op, "path": path}
        if op != "remove":
            members["value"] = value
        patch.append(members)
    return {
        "revision": revision,
        "index": index,
        "targetType": kind,
        "targetKey": key,
        "patch": patch,
    }


def patch_payload(first: int, last: int, *deltas: Json, **members: Json) -> dict[str, Json]:
    """Return the payload of a patch."""
    return {
        "schema": "pi-workflows.run-patch.v1",
        "runId": RUN,
        "fromRevision": first,
        "toRevision": last,
        "display": RUNNING,
        "live": True,
        "possiblyInterrupted": False,
        "deltas": list(deltas),
        **members,
    }


def patch(first: int, last: int, *deltas: Json, **members: Json) -> Event:
    """Return the event that brings a patch."""
    return Event(
        subscription_id="subscription-1",
        event=EventKind.RUN_PATCH,
        payload=patch_payload(first, last, *deltas, **members),
        revision=last,
        run_id=RUN,
    )


def tail(revision: int, total: int, *items: Json, target: str = "timeline/trace:tail") -> Json:
    """Return the delta that appends to a window."""
    return delta(revision, target, ("append", "/items", list(items)), ("replace", "/total", total))


def unavailable(reason: FailureReason) -> Event:
    """Return the event that says why a subscription tells nothing."""
    return Event(
        subscription_id="subscription-1",
        event=EventKind.UNAVAILABLE,
        payload=SubscriptionFailure(reason_code=reason, message="Gone.").document(),
        run_id=RUN,
    )


def new_mirror(revision: int = 4, **members: Json) -> RunMirror:
    """Return a mirror with a view."""
    mirror = RunMirror(RUN)
    mirror.take(snapshot(revision, **members))
    return mirror


def _with_page(place: tuple[str, ...], content: Json) -> dict[str, Json]:
    """Return the member of a view that has a page in it."""
    name, *rest = place
    if not rest:
        return {name: content}
    session = run_view(1)[name]
    assert isinstance(session, dict)
    return {name: {**session, rest[0]: content}}


def mirror_with(place: tuple[str, ...], content: Json) -> RunMirror:
    """Return a mirror whose view has a page in this place."""
    mirror = RunMirror(RUN)
    mirror.take(snapshot(4, **_with_page(place, content)))
    return mirror


def member(mirror: RunMirror, *names: str) -> Json:
    """Return a part of the view."""
    found: Json = mirror.view
    for name in names:
        assert isinstance(found, dict)
        found = found[name]
    return found
