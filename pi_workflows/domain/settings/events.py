"""Facts about settings. A scope opens on its run; each change belongs to the scope's resource."""

from __future__ import annotations

from typing import ClassVar

from pi_workflows.domain.fact import Event
from pi_workflows.domain.rows import SettingsChangeRow, SettingsRow
from pi_workflows.domain.run.events import RunEvent


class RunSettingsOpened(RunEvent):
    """A workflow's settings came to be. Their own resource begins at revision 0, without an event.

    So that its revision is the public change number.
    """

    type: ClassVar[str] = "run.settings_opened"

    settings: SettingsRow


class SettingsChanged(Event):
    """A patch was accepted; attempts that begin from now on are bound to its value."""

    type: ClassVar[str] = "settings.changed"

    run_id: str
    change: SettingsChangeRow


class AttemptStatusChanged(RunEvent):
    """A settings route chose by a value that is no longer the one: its visit is attempted again."""

    type: ClassVar[str] = "attempt.status_changed"

    node_id: str
