"""Changes of a run's settings: by its workflow's rules, its workflow's code, and in order."""

from __future__ import annotations

from dataclasses import dataclass

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json, decode
from pi_workflows.base.errors import PayloadInvalid
from pi_workflows.base.sql import Read
from pi_workflows.domain.run.state import live_run, snapshot_of
from pi_workflows.domain.settings import change
from pi_workflows.domain.settings.patch import patched
from pi_workflows.domain.settings.state import Scope, asked_scope
from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.settings import ChangeSettings
from pi_workflows.server.operations.call import Call, known, replied
from pi_workflows.server.services import Services
from pi_workflows.server.validation import Judgement, settings_judgement


@dataclass(frozen=True, slots=True)
class _Asked:
    """A change that its rules allow.

    Attributes:
        scope: The settings, as it was applied to them.
        after: What they would be.
        judgement: What the workflow's code is asked about it.
    """

    scope: Scope
    after: Json
    judgement: Judgement


async def change_settings(services: Services, call: Call) -> Reply:
    """Change a run's settings, once for this request.

    One change of a run is judged and committed at a time, so that what its workflow's code saw is
    what it is applied to.

    Args:
        services: The server.
        call: `run.changeSettings`.

    Returns:
        The receipt, or the domain's refusal.

    Raises:
        PayloadInvalid: `patchInvalid`, or `settingsInvalid`: the model or the author refuses it.
        AuthorityDenied: `settingsDenied`: the rules do not let this class of actor do it.
        LimitExceeded: `patchTooLarge`, `settingsTooLarge`.
        NotFound: There is no such run or settings.
        TransitionDenied: `runTerminal`, or `workflowSourceChanged`.
        IdempotencyConflict: The identity was used for another request.
        Refused: The workflow's code could not judge it.
        Unavailable: As `Writer.submit`.
    """
    key = (call.request.operation.value, call.run_id)
    return await services.long_work.perform(key, lambda: _changed(services, call))


async def _changed(services: Services, call: Call) -> Reply:
    """Judge a change and commit it."""
    payload = call.read(ChangeSettings)
    if (reply := await known(services.writer, call.request)) is not None:
        return reply
    patch: Json = list(payload.patch)
    with services.store.snapshot() as read:
        asked = _asked(read, call, payload, patch)
    try:
        value = await asked.judgement.value(services.resolver)
    except PayloadInvalid as error:
        raise PayloadInvalid(error.message, code="settingsInvalid", field="patch") from None
    command = change.ChangeSettings(
        run_id=call.run_id,
        scope_id=asked.scope.scope_id,
        request_id=ids.client_request_id(call.request.client_id, call.request.idempotency_key),
        patch=Blob.json(patch),
        judged_number=asked.scope.change_number,
        after=Blob.json(value),
        expected_number=payload.expected_change_number,
    )
    size = len(command.patch.content) + len(command.after.content)
    return replied(await services.writer.submit(call.order(command, size_bytes=size)))


def _asked(read: Read, call: Call, payload: ChangeSettings, patch: Json) -> _Asked:
    """Apply a patch by its rules, and return what the workflow's code is asked."""
    state = live_run(read, call.run_id)
    scope = asked_scope(read, call.run_id, payload.scope_id)
    policies = snapshot_of(read, state).settings or ()
    policy = next(each for each in policies if each.mount == scope.mount_path)
    before = decode(read.blob(scope.current_hash))
    after = patched(before, patch, policy, call.actor.type)
    contract: Json = {"actor": call.actor.type, "before": before}
    judgement = settings_judgement(read, call.run_id, scope.mount_path, contract, after)
    return _Asked(scope, after, judgement)
