"""Actions: functions with a declared effect."""

from __future__ import annotations

from typing import Final, TypeAlias

from pi_workflows.authoring.nodes import ActionNode, AnyNode, plain_json
from pi_workflows.base.canonical import Json
from pi_workflows.definition.snapshot import EffectPolicy
from pi_workflows.protocol.proposals import Failure
from pi_workflows.runner.attempts import Attempt, Settlement, failed, timed_out
from pi_workflows.runner.calls import Calls, Expired, Raised, Returned
from pi_workflows.runner.caught import Caught
from pi_workflows.runner.contents import encoded
from pi_workflows.runner.contexts import Contexts
from pi_workflows.runner.effects import Adopted, Due, Effects
from pi_workflows.runner.judge import Judge

_NULL: Final = b"null"
_REQUEST_HINT: Final = "Declare request= with what identifies the effect."

Prepared: TypeAlias = bytes | Settlement


class Actions:
    """Executes actions."""

    def __init__(self, contexts: Contexts, effects: Effects, calls: Calls, judge: Judge) -> None:
        """Execute the actions of a run.

        Args:
            contexts: What functions are given.
            effects: Where effects are reserved, begun and settled.
            calls: How functions are called.
            judge: What becomes of what they return.
        """
        self._contexts = contexts
        self._effects = effects
        self._calls = calls
        self._judge = judge

    async def execute(
        self, attempt: Attempt, node: ActionNode[object], policy: EffectPolicy
    ) -> Settlement:
        """Execute an attempt.

        Args:
            attempt: The attempt; its start is proposed.
            node: Its node.
            policy: The node's effect.
        """
        request = await self._request(attempt, node)
        if isinstance(request, Settlement):
            return request
        reserved = await self._effects.reserve(attempt, policy, request)
        match reserved:
            case Failure():
                return failed(reserved)
            case Adopted(result):
                return self._judge.stored(node, _NULL if result is None else result)
            case Due():
                return await self._try(attempt, node, policy, reserved)

    async def _request(self, attempt: Attempt, node: ActionNode[object]) -> Prepared:
        """Return what the effect is about to do, canonical, or why the attempt ends here."""
        value: object = None
        if node.request is not None:
            called = await self._calls.call(
                node.request,
                self._contexts.of(attempt),
                deadline_ns=attempt.deadline_ns,
                cancel=attempt.cancel,
            )
            if not isinstance(called, Returned):
                return self._judge.settlement(attempt, called)
            value = called.value
        content = b""
        with Caught() as caught:
            request: Json = (
                self._contexts.effect_request(attempt.node_path)
                if node.request is None
                else plain_json(value)
            )
            content = encoded(request, field="request", hint=_REQUEST_HINT)
        return content if caught.error is None else failed(self._judge.reason(caught.error))

    async def _try(
        self, attempt: Attempt, node: ActionNode[object], policy: EffectPolicy, due: Due
    ) -> Settlement:
        """Call the function and settle its effect."""
        await self._effects.begin(due, policy)
        called = await self._calls.call(
            node.function,
            self._contexts.of_action(attempt, policy.type, due.number),
            deadline_ns=attempt.deadline_ns,
            cancel=attempt.cancel,
        )
        match called:
            case Expired(is_stuck):
                settlement = timed_out(attempt.timeout_ms, is_stuck=is_stuck)
                await self._effects.settle(due, "uncertain", failure=settlement.failure)
                return settlement
            case Raised(error):
                reason = self._judge.reason(error)
                await self._effects.settle(due, "rejected", failure=reason)
                return failed(reason)
            case Returned(value):
                return await self._returned(node, due, value)

    async def _returned(self, node: AnyNode, due: Due, value: object) -> Settlement:
        """Settle the effect of a function that returned, whether the result fits or not."""
        settlement = self._judge.output(node, value)
        result = settlement.output
        if result is None:
            with Caught():
                result = encoded(plain_json(value), field="result")
        if result is None:
            await self._effects.settle(due, "rejected", failure=settlement.failure)
        else:
            await self._effects.settle(due, "applied", result=result)
        return settlement
