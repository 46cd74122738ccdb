"""Effects that a person looks at and decides about."""

from __future__ import annotations

from dataclasses import replace

from pi_workflows.domain.effect.recovery import ResolveEffect
from pi_workflows.domain.effect.state import effect_state
from pi_workflows.protocol.effects import EffectList, EffectResolve
from pi_workflows.protocol.reply import Reply
from pi_workflows.server.operations.call import Call, replied, shown
from pi_workflows.server.services import Services
from pi_workflows.views.effects import effect_items


async def list_effects(services: Services, call: Call) -> Reply:
    """Return a page of effects, the unsettled ones unless a status is named. Raises NotFound."""
    payload = call.read(EffectList)
    with services.store.snapshot() as read:
        items = effect_items(
            read,
            run_id=payload.run_id,
            status=payload.status,
            effect_id=payload.effect_id,
            cursor=payload.cursor,
        )
    return shown(items)


async def resolve(services: Services, call: Call) -> Reply:
    """Settle an ambiguous effect by what a person found out.

    Raises:
        NotFound: There is no such effect; the refusal is not remembered, as nothing has its name.
        Unavailable: As `Writer.submit`.
    """
    payload = call.read(EffectResolve)
    with services.store.snapshot() as read:
        run_id = effect_state(read, payload.effect_id).run_id
    command = ResolveEffect(
        run_id=run_id,
        effect_id=payload.effect_id,
        attempt_number=payload.attempt_number,
        action=payload.action,
        evidence=payload.evidence,
    )
    order = call.order(command, size_bytes=len(payload.evidence))
    return replied(await services.writer.submit(replace(order, run_id=run_id)))
