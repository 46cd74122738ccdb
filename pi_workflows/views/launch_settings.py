"""The settings that a runner goes on with: those of each workflow's newest invocation."""

from __future__ import annotations

from collections.abc import Callable

from pi_workflows.base.sql import Read
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.domain.settings.state import current_scopes
from pi_workflows.protocol.content import Ref
from pi_workflows.protocol.runner import SettingsScope
from pi_workflows.views.content import stored_value
from pi_workflows.views.value import Value


def settings_scopes(
    read: Read, run_id: str, snapshot: Snapshot, ref: Callable[[Value], Ref]
) -> tuple[SettingsScope, ...]:
    """Return the settings of a run as its next launch names them.

    Args:
        read: The launch's read.
        run_id: The run.
        snapshot: Its definition.
        ref: Names a value, or takes it along.

    Returns:
        The newest of each workflow that has any, the root's first.
    """
    if not snapshot.settings:
        return ()
    found: list[SettingsScope] = []
    for scope in current_scopes(read, run_id):
        value = stored_value(read, scope.current_hash)
        assert value is not None, "settings without their value"
        found.append(
            SettingsScope(
                scope_id=scope.scope_id,
                mount_path=scope.mount_path,
                invocation=scope.invocation,
                change_number=scope.change_number,
                value=ref(value),
            )
        )
    return tuple(found)
