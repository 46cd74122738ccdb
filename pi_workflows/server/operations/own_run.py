"""Whose run it is: a session speaks about its own runs only (the authority matrix, "own session").

A control request is about any run. Nothing is remembered of a refusal.
"""

from __future__ import annotations

from typing import Final

from pi_workflows.base.errors import AuthorityDenied
from pi_workflows.protocol.operations import Operation
from pi_workflows.protocol.runs import RunStart
from pi_workflows.server.authority import OWN_RUN
from pi_workflows.server.operations.call import Call
from pi_workflows.server.services import Services
from pi_workflows.views.session_view import run_binding

_INTERACTIVE_ONLY: Final = frozenset({Operation.RUN_RESTART})


def session_of(call: Call) -> str:
    """Return the session in whose name a request is made, for an operation of sessions only.

    Its connection holds the session's epoch and has reported the branch, where that is needed.
    """
    assert call.speaker.session_id is not None, f"{call.request.operation} without a session"
    return call.speaker.session_id


def require_own_run(services: Services, call: Call) -> None:
    """Refuse what a session asks for about a run that is not its own.

    A run that is not there is the decider's to refuse: that refusal is remembered.

    Args:
        services: The server.
        call: The request; before its receipt is looked for.

    Raises:
        AuthorityDenied: `runOfAnotherSession`.
    """
    operation, session_id = call.request.operation, call.speaker.session_id
    if session_id is None or operation not in OWN_RUN:
        return
    if isinstance(call.payload, RunStart):
        is_own = call.payload.origin_session_id == session_id
    else:
        with services.store.snapshot() as read:
            binding = run_binding(read, call.run_id)
        if binding is None:
            return
        is_own = binding.origin_session_id == session_id
        if operation in _INTERACTIVE_ONLY:
            is_own = is_own and binding.execution_mode == "interactive"
    if not is_own:
        raise AuthorityDenied(
            "A session may ask for that about its own runs only.",
            code="runOfAnotherSession",
            field="runId",
        )
