"""The settings of one run as this runner knows them: opened when a workflow is entered."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from pydantic import BaseModel

from pi_workflows.authoring.workflow import Workflow
from pi_workflows.base import ids
from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import Clock
from pi_workflows.base.limits import DEFINITION_CALLBACK_MS
from pi_workflows.base.units import NS_PER_MS
from pi_workflows.definition.paths import ROOT
from pi_workflows.protocol.proposals import Failure, SettingsNow
from pi_workflows.protocol.runner import SettingsScope
from pi_workflows.runner.attempts import Bound
from pi_workflows.runner.calls import Calls, Expired, Raised, Returned
from pi_workflows.runner.caught import Caught
from pi_workflows.runner.contents import Contents, encoded
from pi_workflows.runner.contexts import Contexts
from pi_workflows.runner.judge import Judge
from pi_workflows.runner.plan import Enter, Over


@dataclass(frozen=True, slots=True)
class _Place:
    """Where settings stand: a workflow's mount, and which of its invocations."""

    mount: str
    invocation: int


class Settings:
    """The settings of one run.

    Attributes:
        known: The newest value that is known of each workflow's settings, by its mount.
    """

    def __init__(
        self,
        run_id: str,
        workflow: Workflow[BaseModel],
        contexts: Contexts,
        *,
        known: dict[str, Bound],
        contents: Contents,
        calls: Calls,
        judge: Judge,
        clock: Clock,
    ) -> None:
        """Know nothing yet; the parts are those of one runner."""
        self.known = known
        self._run_id = run_id
        self._workflow = workflow
        self._contexts = contexts
        self._contents = contents
        self._calls = calls
        self._judge = judge
        self._clock = clock
        self._invocations: dict[str, int] = {}
        self._opened: list[_Place] = []

    async def recall(self, scopes: tuple[SettingsScope, ...]) -> None:
        """Take in the settings that the run has already."""
        for scope in scopes:
            content = await self._contents.get(scope.value)
            self._invocations[scope.mount_path] = scope.invocation
            self.known[scope.mount_path] = bound(scope.scope_id, scope.change_number, content)

    async def enter(self, step: Enter) -> Over | None:
        """Make the first settings of the workflows that a step enters.

        Args:
            step: What is attempted next; the inputs of what it enters are made.

        Returns:
            The run's end when settings cannot be made, else None.
        """
        is_first = ROOT not in self._invocations
        for mount in ((ROOT,) if is_first else ()) + step.enters:
            if self._workflow.at(mount).settings is None:
                continue
            failure = await self._open(mount)
            if failure is not None:
                message = f"{mount or 'settings'}: cannot be made: {failure.message}"
                return Over("failed", failure=Failure.of("settingsInvalid", message))
        return None

    def opening(self) -> list[dict[str, Json]]:
        """Return the commands that open what was entered, once; a value is put where it is large.

        They belong into the proposal of the attempt that follows.
        """
        commands: list[dict[str, Json]] = []
        for place in self._opened:
            reference, _ = self._contents.ref(self.known[place.mount].content)
            commands.append(
                {
                    "command": "openSettings",
                    "mountPath": place.mount,
                    "invocation": place.invocation,
                    "initial": reference,
                }
            )
        self._opened = []
        return commands

    @property
    def is_opening(self) -> bool:
        """Whether there are such commands."""
        return bool(self._opened)

    async def learn(self, mount: str, now: SettingsNow) -> Bound:
        """Take in what the server says the settings of a workflow are now."""
        content = await self._contents.get(now.value)
        self.known[mount] = bound(now.scope_id, now.change_number, content)
        return self.known[mount]

    async def _open(self, mount: str) -> Failure | None:
        """Keep the first value of a workflow's settings, or return why there is none."""
        settings = self._workflow.at(mount).settings
        assert settings is not None, mount
        # A new invocation sees nothing of the settings before it.
        self.known.pop(mount, None)
        context = self._contexts.of_workflow(mount)
        called = await self._calls.call(
            settings.initial,
            context.input,
            deadline_ns=self._clock.monotonic_ns() + DEFINITION_CALLBACK_MS * NS_PER_MS,
            cancel=context.cancel,
        )
        match called:
            case Raised(error):
                return self._judge.reason(error)
            case Expired():
                return Failure.of("expired", f"it took more than {DEFINITION_CALLBACK_MS} ms")
            case Returned(value):
                content = b""
                with Caught() as caught:
                    content = encoded(settings.initial_json(value), field="settings")
                if caught.error is not None:
                    return self._judge.reason(caught.error)
        number = self._invocations.get(mount, 0) + 1
        self._invocations[mount] = number
        self.known[mount] = bound(ids.settings_scope_id(self._run_id, mount, number), 0, content)
        self._opened.append(_Place(mount, number))
        return None


def bound(scope_id: str, change_number: int, content: bytes) -> Bound:
    """Return a value of settings with its digest."""
    return Bound(scope_id, change_number, hashlib.sha256(content).hexdigest(), content)


def claim(known: Bound) -> dict[str, Json]:
    """Return how a runner names the settings that it knows."""
    return {
        "scopeId": known.scope_id,
        "changeNumber": known.change_number,
        "hash": known.value_hash,
    }
