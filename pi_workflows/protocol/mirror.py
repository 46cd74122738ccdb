"""The last good view of one run, kept current by what its subscription tells.

The client protocol, "Deltas". Whatever a frame does wrong, the view before it stays and is marked:
it may be shown, and nothing may be decided on it before a fresh one came.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import PayloadInvalid, ProtocolViolation
from pi_workflows.protocol.change import Change
from pi_workflows.protocol.deltas import (
    RunViewDocument,
    Section,
    apply_delta,
    with_definition,
)
from pi_workflows.protocol.envelope import Event, EventKind
from pi_workflows.protocol.run_patch import RunPatch
from pi_workflows.protocol.views import SubscriptionFailure

_VIEW_SCHEMA: Final = "pi-workflows.run-view.v1"


class RunMirror:
    """The last good view of one run.

    Args:
        run_id: The run.
    """

    def __init__(self, run_id: str) -> None:
        """Begin without a view."""
        self.run_id = run_id
        self._view: RunViewDocument | None = None
        self._revision: int | None = None
        self._stale: frozenset[Section] = frozenset()
        self._is_behind = True
        self._needs_watch = False

    @property
    def view(self) -> RunViewDocument | None:
        """`pi-workflows.run-view.v1`; None before the first one.

        It shares its parts with earlier and later views: never change it.
        """
        return self._view

    @property
    def revision(self) -> int | None:
        """The presentation revision of the view."""
        return self._revision

    @property
    def stale(self) -> frozenset[Section]:
        """The sections that are older than the view.

        Nothing fetches them by itself. Ask when they are shown: a page for `steps`, `trace`,
        `entries` and `events`; for `aggregates` either `view.run.get`, whose answer `take_view`
        takes, or the page `aggregate`, which refers to all outputs and results, complete; for
        `definition` `view.run.get`, or once for all the content to which its window refers. A
        `PageCache` drops its pages by the same changes and names what it lacks.
        """
        return self._stale

    @property
    def is_stale(self) -> bool:
        """Whether the whole view is for showing only.

        There is none, the connection is lost, or a frame was at fault.
        """
        return self._is_behind or self._needs_watch

    @property
    def needs_watch(self) -> bool:
        """Whether only a snapshot helps: the run has to be watched again without a revision."""
        return self._needs_watch

    def take(self, event: Event) -> Change:
        """Take what the subscription tells.

        Args:
            event: The next event, in order.

        Returns:
            What changed. A frame at fault changes nothing but `is_stale` and `needs_watch`.
        """
        was_stale = self.is_stale
        try:
            change = self._take(event)
        except PayloadInvalid:
            change = self._refuse("eventInvalid")
        except ProtocolViolation as violation:
            change = self._refuse(violation.reason_code)
        if was_stale and not (self.is_stale or change.is_snapshot):
            return replace(change, is_restored=True)
        return change

    def take_view(self, view: Json) -> Change:
        """Take the answer of `view.run.get`, which brings every section up to date.

        Args:
            view: The receipt.

        Returns:
            What changed: nothing when the view is older than the one that is there.

        Raises:
            ProtocolViolation: It is no view of this run.
        """
        document, revision = _checked(view, self.run_id)
        if self._revision is not None and revision < self._revision:
            return Change()
        return self._accept(document, revision, is_behind=self._is_behind)

    def _take(self, event: Event) -> Change:
        """Take an event, or raise what is wrong with it."""
        match event.event:
            case EventKind.RUN_SNAPSHOT:
                return self._replace(event)
            case EventKind.RUN_PATCH:
                return self._patch(event)
            case EventKind.UNAVAILABLE:
                self._is_behind = True
                return Change(failure=SubscriptionFailure.parse(event.payload))
            case _:
                return self._refuse("eventUnknown")

    def _replace(self, event: Event) -> Change:
        """Take a snapshot."""
        document, revision = _checked(event.payload, self.run_id)
        _check_envelope(event, self.run_id, revision)
        self._needs_watch = False
        return self._accept(document, revision, is_behind=False)

    def _accept(self, view: RunViewDocument, revision: int, *, is_behind: bool) -> Change:
        """Make a whole view the one that stands."""
        self._view, self._revision = view, revision
        self._stale = frozenset()
        self._is_behind = is_behind
        return Change(is_snapshot=True, is_display=True)

    def _patch(self, event: Event) -> Change:
        """Take a patch: all of it, or what people are told and nothing else, or nothing."""
        patch = RunPatch.parse(event.payload)
        if patch.run_id != self.run_id:
            raise _wrong_run()
        _check_envelope(event, self.run_id, patch.to_revision)
        _check_order(patch)
        if self._view is None or self._revision is None:
            raise _gap()
        if patch.to_revision <= self._revision:
            # Whether it repeats the past or tells a process fact, it was made now.
            is_current = patch.to_revision == self._revision
            self._is_behind = self._is_behind and not is_current
            return self._tell(self._view, patch)
        if self._needs_watch:
            return self._tell(self._view, patch)
        if patch.from_revision != self._revision:
            self._needs_watch = True
            told = self._tell(self._view, patch)
            return Change(is_display=told.is_display, fault=_gap().reason_code)
        view, stale = self._view, self._stale
        for delta in patch.deltas:
            view, stale = apply_delta(view, delta, stale)
        stale = with_definition(view, stale)
        newly_stale = stale - self._stale
        told = self._tell({**view, "revision": patch.to_revision}, patch)
        self._revision, self._stale, self._is_behind = patch.to_revision, stale, False
        return Change(
            is_display=told.is_display,
            targets={delta.target: delta.revision for delta in patch.deltas},
            stale=newly_stale,
        )

    def _tell(self, view: RunViewDocument, patch: RunPatch) -> Change:
        """Put what people are told into the view, which becomes the one that stands."""
        told: dict[str, Json] = {
            "display": patch.display,
            "live": patch.live,
            "possiblyInterrupted": patch.possibly_interrupted,
        }
        is_display = any(view.get(name) != value for name, value in told.items())
        self._view = {**view, **told} if is_display else view
        return Change(is_display=is_display)

    def _refuse(self, code: str) -> Change:
        """Keep the view, and say that only a snapshot helps."""
        self._needs_watch = True
        return Change(fault=code)


def _checked(view: Json, run_id: str) -> tuple[RunViewDocument, int]:
    """Return a whole view and its revision, when it is one of this run."""
    if not isinstance(view, dict) or view.get("schema") != _VIEW_SCHEMA:
        raise ProtocolViolation("a snapshot is no run view", code="viewInvalid")
    if view.get("runId") != run_id:
        raise _wrong_run()
    revision = view.get("revision")
    if not isinstance(revision, int) or isinstance(revision, bool) or revision < 0:
        raise ProtocolViolation("a run view has no revision", code="viewInvalid")
    return view, revision


def _check_envelope(event: Event, run_id: str, revision: int) -> None:
    """Refuse an event whose envelope says something else than its payload."""
    if event.run_id != run_id:
        raise _wrong_run()
    if event.revision != revision:
        raise ProtocolViolation(
            "an event and its payload are of different revisions", code="revisionMismatch"
        )


def _check_order(patch: RunPatch) -> None:
    """Refuse deltas that leave out a revision or an index, or stand in another order."""
    revision, index = patch.from_revision, None
    for delta in patch.deltas:
        is_next = index is not None and (delta.revision, delta.index) == (revision, index + 1)
        if not is_next and (delta.revision, delta.index) != (revision + 1, 0):
            raise _disordered()
        revision, index = delta.revision, delta.index
    if revision != patch.to_revision:
        raise _disordered()


def _gap() -> ProtocolViolation:
    """Return the violation of a patch to another revision than the one that is there."""
    return ProtocolViolation("a patch begins at another revision", code="revisionGap")


def _wrong_run() -> ProtocolViolation:
    """Return the violation of an event about another run."""
    return ProtocolViolation("an event is about another run", code="wrongRun")


def _disordered() -> ProtocolViolation:
    """Return the violation of deltas that do not lead from one revision to the other."""
    return ProtocolViolation("the deltas of a patch have a gap", code="deltasDisordered")
