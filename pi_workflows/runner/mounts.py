"""Entering included workflows: a new invocation sees nothing of the last, and gets its input."""

from __future__ import annotations

from pydantic import BaseModel

from pi_workflows.authoring.workflow import Workflow
from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import Clock
from pi_workflows.base.limits import DEFINITION_CALLBACK_MS
from pi_workflows.base.units import NS_PER_MS
from pi_workflows.definition.composition import invocation_number
from pi_workflows.definition.paths import local_name, mounts_of, scope_of
from pi_workflows.protocol.proposals import Failure
from pi_workflows.runner.calls import Calls, Expired, Raised, Returned
from pi_workflows.runner.caught import Caught
from pi_workflows.runner.contents import encoded
from pi_workflows.runner.contexts import Contexts
from pi_workflows.runner.history import History
from pi_workflows.runner.judge import Judge
from pi_workflows.runner.plan import Enter, Over


class Mounts:
    """Enters the mounts of one run."""

    def __init__(
        self,
        workflow: Workflow[BaseModel],
        history: History,
        contexts: Contexts,
        *,
        calls: Calls,
        judge: Judge,
        clock: Clock,
    ) -> None:
        """Enter mounts; the parts are those of one runner."""
        self._workflow = workflow
        self._history = history
        self._contexts = contexts
        self._calls = calls
        self._judge = judge
        self._clock = clock

    def invocation(self, mount: str) -> int:
        """Return the number of a mount's current invocation, from 1."""
        return invocation_number(self._workflow.snapshot.mount_by_path[mount], self._history.exited)

    async def enter(self, step: Enter) -> Over | None:
        """Begin the invocations that a step begins, and make the inputs that it needs.

        A runner that took over makes the inputs of open invocations again: what they are made of
        has not changed since, as the workflows around them stood still.

        Args:
            step: What is attempted next.

        Returns:
            The run's end when an input cannot be made, else None.
        """
        for mount in step.enters:
            self._history.enter(mount)
        for mount in mounts_of(step.node_path):
            if mount not in self._history.inputs:
                failure = await self._make_input(mount)
                if failure is not None:
                    message = f"{mount}: its input cannot be made: {failure.message}"
                    return Over("failed", failure=Failure.of("includeInputInvalid", message))
        return None

    async def _make_input(self, mount: str) -> Failure | None:
        """Keep the input of an invocation, or return why there is none."""
        include = self._workflow.at(scope_of(mount)).includes[local_name(mount)]
        value: object = {}
        if include.function is not None:
            context = self._contexts.of_mount(mount, self.invocation(mount))
            called = await self._calls.call(
                include.function,
                context,
                deadline_ns=self._clock.monotonic_ns() + DEFINITION_CALLBACK_MS * NS_PER_MS,
                cancel=context.cancel,
            )
            match called:
                case Raised(error):
                    return self._judge.reason(error)
                case Expired():
                    return Failure.of("expired", f"it took more than {DEFINITION_CALLBACK_MS} ms")
                case Returned():
                    value = called.value
        made: Json = None
        with Caught() as caught:
            made = self._workflow.at(mount).mapped_input(value)
            encoded(made, field="input")
        if caught.error is not None:
            return self._judge.reason(caught.error)
        self._history.inputs[mount] = made
        return None
