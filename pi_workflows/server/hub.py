"""News: which subscriptions have something new to tell, and nothing else.

A commit, or a process fact that changed, marks subscriptions dirty and wakes their connections.
Each connection builds the newest event when it can send one, so changes coalesce and a slow client
delays nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pi_workflows.kernel.order import Answer
from pi_workflows.views.run_patch import RunPatch
from pi_workflows.views.run_view import RunView


@dataclass(slots=True, eq=False)
class Subscription:
    """What one connection wants to know.

    Attributes:
        subscription_id: The client's name for it.
        run_id: The run that is watched; None for the run list.
        wake: Called, without blocking, when there is something to tell.
        limit: How many runs a list shows; None is the default.
        revision: The presentation revision that the client has; None when it has none.
        is_dirty: Whether something changed since the last event was built; true at first.
        sent_total: Events built so far.
    """

    subscription_id: str
    run_id: str | None
    wake: Callable[[], None]
    limit: int | None = None
    revision: int | None = None
    is_dirty: bool = True
    sent_total: int = 0


@dataclass(slots=True, eq=False)
class _Shared:
    """A run as it is since its last change, for everybody who watches it.

    Attributes:
        view: The whole of it.
        patches: What changed since a revision; None where that cannot be told.
    """

    view: RunView | None = None
    patches: dict[int, RunPatch | None] = field(default_factory=dict[int, RunPatch | None])


class Hub:
    """Every subscription of every connection, and what they share of the state as it is now."""

    def __init__(self) -> None:
        self._by_run: dict[str, set[Subscription]] = {}
        self._lists: set[Subscription] = set()
        self._shared: dict[str, _Shared] = {}

    @property
    def subscription_count(self) -> int:
        """How many subscriptions there are."""
        return len(self._lists) + sum(map(len, self._by_run.values()))

    def view(self, run_id: str, build: Callable[[], RunView]) -> RunView:
        """Return the view of a watched run, built once for everybody who begins with it.

        Args:
            run_id: The run.
            build: Builds the view as it is now.

        Returns:
            The view since the last change of the run.
        """
        shared = self._shared_of(run_id)
        if shared.view is None:
            shared.view = build()
        return shared.view

    def patch(
        self, run_id: str, from_revision: int, build: Callable[[], RunPatch | None]
    ) -> RunPatch | None:
        """Return what changed since a revision, built once for everybody who has that one.

        Args:
            run_id: The run.
            from_revision: The presentation revision that they have.
            build: Builds the patch; None when there is none.

        Returns:
            The patch to the run as it is since its last change.
        """
        patches = self._shared_of(run_id).patches
        if from_revision not in patches:
            patches[from_revision] = build()
        return patches[from_revision]

    def _shared_of(self, run_id: str) -> _Shared:
        """Return what the watchers of a run share; of a run that nobody watches nothing is kept."""
        if run_id in self._by_run:
            return self._shared.setdefault(run_id, _Shared())
        return _Shared()

    def add(self, subscription: Subscription) -> None:
        """Begin to mark a subscription; it starts dirty, as its first event is the state now."""
        if subscription.run_id is None:
            self._lists.add(subscription)
        else:
            self._by_run.setdefault(subscription.run_id, set()).add(subscription)
        subscription.wake()

    def remove(self, subscription: Subscription) -> None:
        """End a subscription; one that is not there is ignored."""
        self._lists.discard(subscription)
        watchers = self._by_run.get(subscription.run_id or "")
        if watchers is not None:
            watchers.discard(subscription)
            if not watchers:
                del self._by_run[subscription.run_id or ""]
                self._shared.pop(subscription.run_id or "", None)

    def observe(self, answers: Sequence[Answer]) -> None:
        """Mark what a group of commands changed. The writer calls it after COMMIT."""
        changed = {run_id for answer in answers for run_id in answer.views}
        if changed:
            self._mark(changed)

    def process_changed(self, run_id: str) -> None:
        """Mark a run whose process began or ended: its display differs without a commit."""
        self._mark((run_id,))

    def _mark(self, run_ids: Iterable[str]) -> None:
        """Mark the watchers of these runs, and of the list that shows them."""
        for run_id in run_ids:
            self._shared.pop(run_id, None)
            for subscription in self._by_run.get(run_id, ()):
                subscription.is_dirty = True
                subscription.wake()
        for subscription in self._lists:
            subscription.is_dirty = True
            subscription.wake()
