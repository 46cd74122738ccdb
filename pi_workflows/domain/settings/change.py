"""Settings open when a workflow is entered, and change while its run goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import (
    IdempotencyConflict,
    LimitExceeded,
    Outcome,
    RevisionConflict,
    TransitionDenied,
)
from pi_workflows.base.limits import SETTINGS_BYTES_MAX
from pi_workflows.base.sql import Read
from pi_workflows.domain.fact import Command, Context, Decided
from pi_workflows.domain.rows import SettingsChangeRow, SettingsRow
from pi_workflows.domain.run.state import live_run, open_attempt, snapshot_of, working_run
from pi_workflows.domain.settings.events import RunSettingsOpened, SettingsChanged
from pi_workflows.domain.settings.state import SQL, Scope, asked_scope, newest_scope
from pi_workflows.domain.value import require_json

# Where a change came in. Every other way ends at the server's socket.
_SOURCE = "client"


@dataclass(frozen=True, slots=True)
class OpenSettings(Command):
    """A workflow is entered: its settings come to be.

    Attributes:
        mount_path: The workflow's mount; empty for the root.
        invocation: Which of its invocations, from 1.
        initial: Their first value.
    """

    mount_path: str
    invocation: int
    initial: Blob


@dataclass(frozen=True, slots=True)
class ChangeSettings(Command):
    """Replace a value by a patched one, which was judged by the rules and by the workflow's code.

    Attributes:
        scope_id: The settings.
        request_id: The change's own identity.
        patch: The patch.
        judged_number: The number of the change that the patch was applied to.
        after: The patched value.
        expected_number: The change number that the caller has read; None for any.
    """

    scope_id: str
    request_id: str
    patch: Blob
    judged_number: int
    after: Blob
    expected_number: int | None = None


class _Earlier(NamedTuple):
    """A change that the same request made before."""

    change_number: int
    patch_hash: bytes


def open_settings(command: OpenSettings, context: Context, read: Read) -> Decided:
    """Decide that a workflow's settings come to be, before its first attempt begins.

    Raises:
        NotFound: There is no such run.
        TransitionDenied: It has ended, an attempt is open, the workflow declares no settings, or
            another invocation is next.
        PayloadInvalid: `notJson`, the value comes as text.
        LimitExceeded: `settingsTooLarge`.
    """
    state = working_run(read, command.run_id)
    if open_attempt(read, command.run_id) is not None:
        raise TransitionDenied("An attempt is already open.", code="attemptOpen")
    require_json("initial", command.initial)
    if len(command.initial.content) > SETTINGS_BYTES_MAX:
        raise LimitExceeded(
            f"Settings have at most {SETTINGS_BYTES_MAX:,} bytes.", code="settingsTooLarge"
        )
    policies = snapshot_of(read, state).settings or ()
    newest = newest_scope(read, command.run_id, command.mount_path)
    due = 1 if newest is None else newest.invocation + 1
    is_declared = any(policy.mount == command.mount_path for policy in policies)
    is_root_again = command.mount_path == "" and due > 1
    if not is_declared or is_root_again or command.invocation != due:
        raise TransitionDenied("These settings are not due.", code="settingsMismatch")
    scope_id = ids.settings_scope_id(command.run_id, command.mount_path, command.invocation)
    row = SettingsRow(
        scope_id=scope_id,
        resource_id=ids.resource_id("settings", scope_id),
        origin_run_id=command.run_id,
        active_run_id=command.run_id,
        mount_path=command.mount_path,
        invocation=command.invocation,
        initial_hash=command.initial.hex,
        current_hash=command.initial.hex,
        created_at=context.at_ms,
        updated_at=context.at_ms,
    )
    event = RunSettingsOpened(run_id=command.run_id, settings=row)
    return Decided(drafts=(state.draft(event),), blobs=(command.initial,))


def change_settings(command: ChangeSettings, context: Context, read: Read) -> Decided:
    """Decide on a change: it counts if nothing else changed since it was judged.

    The patch, the value and the number that attempts are bound to from now on are one event.

    Raises:
        NotFound: There is no such run or settings.
        TransitionDenied: `runTerminal`.
        RevisionConflict: `settingsChanged`: the settings are at another number than the one that
            was judged or expected.
        IdempotencyConflict: `requestReused`: the request made another change.
    """
    live_run(read, command.run_id)
    scope = asked_scope(read, command.run_id, command.scope_id)
    earlier = read.one(
        _Earlier,
        SQL["change_of_request"],
        scope_id=scope.scope_id,
        request_id=command.request_id,
    )
    if earlier is not None:
        return _adopted(command, scope, earlier)
    wanted = (command.judged_number, command.expected_number)
    if any(number not in (None, scope.change_number) for number in wanted):
        raise RevisionConflict(
            f"The settings are at change {scope.change_number}, not the one that was read.",
            code="settingsChanged",
            field="expectedChangeNumber",
            hint=f"Read them again: pi-workflows settings {command.run_id}",
        )
    if command.after.digest == scope.current_hash:
        return Decided(receipt=_receipt(scope, scope.change_number), outcome=Outcome.ADOPTED)
    number = scope.change_number + 1
    row = SettingsChangeRow(
        change_id=ids.settings_change_id(scope.scope_id, number),
        scope_id=scope.scope_id,
        request_id=command.request_id,
        change_number=number,
        source_type=_SOURCE,
        patch_hash=command.patch.hex,
        before_hash=scope.current_hash.hex(),
        after_hash=command.after.hex,
        accepted_at=context.at_ms,
    )
    event = SettingsChanged(run_id=command.run_id, change=row)
    return Decided(
        drafts=(scope.draft(event),),
        blobs=(command.patch, command.after),
        receipt={**_receipt(scope, number), "adopted": False},
    )


def _adopted(command: ChangeSettings, scope: Scope, earlier: _Earlier) -> Decided:
    """Adopt the change that this very request made before."""
    if earlier.patch_hash != command.patch.digest:
        raise IdempotencyConflict(
            "The request made another change.", code="requestReused", field="idempotencyKey"
        )
    return Decided(receipt=_receipt(scope, earlier.change_number), outcome=Outcome.ADOPTED)


def _receipt(scope: Scope, number: int) -> dict[str, Json]:
    """Return what the caller of a change is told when there was nothing to change any more."""
    return {
        "runId": scope.run_id,
        "scopeId": scope.scope_id,
        "changeNumber": number,
        "adopted": True,
    }
