"""What a decision about settings depends on, and to which of their values an attempt is bound."""

from __future__ import annotations

from typing import Final, NamedTuple

from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import NotFound, PayloadInvalid, TransitionDenied
from pi_workflows.base.sql import Read, load
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.fact import Draft, Event

SQL: Final = load(__package__, "reads.sql")


class Binding(NamedTuple):
    """The value that an attempt is bound to, for as long as it lives."""

    scope_id: str
    change_number: int
    value_hash: str


class Scope(NamedTuple):
    """The settings of one invocation of a workflow, as they stand."""

    scope_id: str
    run_id: str
    mount_path: str
    invocation: int
    current_hash: bytes
    change_number: int

    @property
    def binding(self) -> Binding:
        """What an attempt that begins now is bound to."""
        return Binding(self.scope_id, self.change_number, self.current_hash.hex())

    def document(self) -> dict[str, Json]:
        """Return what a runner is told of it: the binding, whose hash names the value."""
        return {
            "scopeId": self.scope_id,
            "changeNumber": self.change_number,
            "hash": self.current_hash.hex(),
        }

    def draft(self, event: Event) -> Draft:
        """Return an event of this scope's own resource."""
        return Draft("settings", self.scope_id, event, self.run_id)


def newest_scope(read: Read, run_id: str, mount_path: str) -> Scope | None:
    """Return the settings of a workflow's newest invocation in a run, None before the first."""
    return read.one(Scope, SQL["newest_scope"], run_id=run_id, mount_path=mount_path)


def current_scopes(read: Read, run_id: str) -> list[Scope]:
    """Return the settings of each workflow's newest invocation in a run, the root's first."""
    return read.all(Scope, SQL["scopes_of_run"], run_id=run_id)


def asked_scope(read: Read, run_id: str, scope_id: str | None) -> Scope:
    """Return the settings that somebody means.

    Args:
        read: Reads of the deciding transaction.
        run_id: The run.
        scope_id: Which; None for the root's, or for the only ones that there are.

    Returns:
        The settings.

    Raises:
        NotFound: `settingsMissing`, the run has no such settings, or none yet.
        PayloadInvalid: `scopeNeeded`, it has several and the root has none.
    """
    if scope_id is None:
        scopes = current_scopes(read, run_id)
        if scopes and (len(scopes) == 1 or scopes[0].mount_path == ""):
            return scopes[0]
        if scopes:
            raise PayloadInvalid(
                f"Run {run_id} has several settings: name one.",
                code="scopeNeeded",
                field="scopeId",
                hint=f"See them with: pi-workflows settings {run_id}",
            )
        raise NotFound(
            f"Run {run_id} has no settings, or none yet.", code="settingsMissing", field="runId"
        )
    found = read.one(Scope, SQL["scope"], scope_id=scope_id)
    if found is None or found.run_id != run_id:
        raise NotFound(
            f"Run {run_id} has no settings {scope_id!r:.80}.",
            code="settingsMissing",
            field="scopeId",
            hint=f"See them with: pi-workflows settings {run_id}",
        )
    return found


def bound_scope(
    read: Read, run_id: str, snapshot: Snapshot, node_path: str, known: Binding | None
) -> Scope | None:
    """Return the settings that a new attempt of a node is bound to, None without any.

    Args:
        read: Reads of the deciding transaction.
        run_id: The run.
        snapshot: Its definition.
        node_path: The node.
        known: The settings that its runner knows; None for none. Their number may be one of
            before.

    Returns:
        The scope, as it stands.

    Raises:
        TransitionDenied: `settingsMismatch`: the runner names another scope than the newest of the
            node's workflow, none where there is one, or one where there is none.
    """
    policy = snapshot.settings_of(node_path)
    scope = newest_scope(read, run_id, policy.mount) if policy is not None else None
    named = known.scope_id if known is not None else None
    if (policy is None) != (scope is None) or named != (scope.scope_id if scope else None):
        raise TransitionDenied(f"{node_path} has other settings.", code="settingsMismatch")
    return scope


def stale_scope(read: Read, run_id: str, mount_path: str, attempt_id: str) -> Scope | None:
    """Return the settings of a workflow if they changed since an attempt was bound to them.

    Args:
        read: Reads of the deciding transaction.
        run_id: The run.
        mount_path: The workflow.
        attempt_id: The attempt, which is bound.
    """
    scope = newest_scope(read, run_id, mount_path)
    number = read.one(int, SQL["attempt_binding"], attempt_id=attempt_id)
    if scope is None or number is None or number == scope.change_number:
        return None
    return scope
