"""Finding, reading and checking workflows, in resolver children."""

from __future__ import annotations

from pi_workflows.protocol.reply import Reply
from pi_workflows.protocol.workflows import WorkflowCheck, WorkflowList, WorkflowResolve
from pi_workflows.server.operations.call import Call, shown
from pi_workflows.server.services import Services


async def list_workflows(services: Services, call: Call) -> Reply:
    """Return every workflow that a project sees by name. Raises as `Resolver.resolve`."""
    payload = call.read(WorkflowList)
    return shown(await services.resolver.list_workflows(payload.project_path))


async def resolve(services: Services, call: Call) -> Reply:
    """Return what `run.start` needs of a workflow and an input. Raises as `Resolver.resolve`."""
    payload = call.read(WorkflowResolve)
    given = {"input": payload.input} if "input" in payload.model_fields_set else {}
    answer = await services.resolver.resolve(
        "resolve", payload.project_path, payload.target, **given
    )
    return shown(answer)


async def check(services: Services, call: Call) -> Reply:
    """Return what a workflow is, without an input. Raises as `Resolver.resolve`."""
    payload = call.read(WorkflowCheck)
    return shown(await services.resolver.resolve("check", payload.project_path, payload.target))
