"""What an author's function is given for one attempt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from pydantic import BaseModel

from pi_workflows.authoring.context import ActionContext, CancelSignal, Context, NodeResult
from pi_workflows.authoring.nodes import AnyNode
from pi_workflows.authoring.workflow import Workflow
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.definition.effects import effect_key
from pi_workflows.definition.paths import joined, local_name, scope_of
from pi_workflows.runner.attempts import Attempt, Bound
from pi_workflows.runner.history import History, Outputs
from pi_workflows.runner.plan import Enter
from pi_workflows.runner.updates import Updates


@dataclass(frozen=True, slots=True)
class _Seen:
    """What every function of one workflow sees, by that workflow's own names."""

    input: BaseModel
    outputs: Outputs
    results: Mapping[str, NodeResult]
    nodes: Mapping[str, AnyNode]


class _Settings(NamedTuple):
    """A workflow's settings as its functions see them."""

    value: BaseModel | None = None
    scope_id: str | None = None
    change_number: int | None = None


_NONE: Final = _Settings()


class Contexts:
    """Makes the contexts of one run.

    Each has an input and outputs of its own: changing them changes nothing else. A function of an
    included workflow sees its own invocation of that workflow only; paths stay full.
    """

    def __init__(
        self,
        run_id: str,
        workflow: Workflow[BaseModel],
        run_input: Json,
        history: History,
        updates: Updates,
        *,
        known: Mapping[str, Bound],
        project_path: str,
    ) -> None:
        """Make contexts of a run.

        Args:
            run_id: The run.
            workflow: Its definition.
            run_input: Its input as it is stored.
            history: What it has done.
            updates: Where its nodes publish.
            known: The newest settings that are known of each workflow, by its mount.
            project_path: The directory of the run's project.
        """
        self._run_id = run_id
        self._workflow = workflow
        self._input = run_input
        self._history = history
        self._updates = updates
        self._known = known
        self._project_path = project_path

    def of(self, attempt: Attempt) -> Context[BaseModel]:
        """Return the context of an attempt."""
        scope = scope_of(attempt.node_path)
        seen, settings = self._seen(scope), self._settings(scope, attempt.settings)
        return Context(
            input=seen.input,
            outputs=seen.outputs,
            results=seen.results,
            run_id=self._run_id,
            project_path=self._project_path,
            node_path=attempt.step.node_path,
            visit=attempt.step.visit,
            attempt_number=attempt.attempt_number,
            cancel=attempt.cancel,
            nodes=seen.nodes,
            publisher=self._updates.publisher(attempt),
            settings=settings.value,
            settings_scope_id=settings.scope_id,
            settings_change_number=settings.change_number,
        )

    def before(self, step: Enter) -> Context[BaseModel]:
        """Return the context for what is computed before an attempt begins; it cannot publish."""
        number = self._history.attempts.get(step.node_path, 0) + 1
        return self._unpublished(step.node_path, step.visit, number)

    def of_mount(self, mount: str, invocation: int) -> Context[BaseModel]:
        """Return the context of what makes the input of an included workflow's invocation.

        Args:
            mount: The mount.
            invocation: Which one, from 1: the context's visit.
        """
        return self._unpublished(mount, invocation, 1)

    def of_workflow(self, mount: str) -> Context[BaseModel]:
        """Return the context of a workflow that was entered, before any of its nodes began.

        Args:
            mount: The workflow's mount; its input is made.
        """
        return self._unpublished(joined(mount, ""), 1, 1)

    def _unpublished(self, path: str, visit: int, attempt_number: int) -> Context[BaseModel]:
        """Return a context of no attempt."""
        scope = scope_of(path)
        seen, settings = self._seen(scope), self._settings(scope, self._known.get(scope))
        return Context(
            input=seen.input,
            outputs=seen.outputs,
            results=seen.results,
            run_id=self._run_id,
            project_path=self._project_path,
            node_path=path,
            visit=visit,
            attempt_number=attempt_number,
            cancel=CancelSignal(),
            nodes=seen.nodes,
            publisher=self._updates.publisher(None),
            settings=settings.value,
            settings_scope_id=settings.scope_id,
            settings_change_number=settings.change_number,
        )

    def of_action(
        self, attempt: Attempt, effect_type: str, effect_attempt: int
    ) -> ActionContext[BaseModel]:
        """Return the context of an action's function.

        Args:
            attempt: The attempt.
            effect_type: The declared type of its effect.
            effect_attempt: Which try of the effect this is, from 1.
        """
        step = attempt.step
        scope = scope_of(step.node_path)
        seen, settings = self._seen(scope), self._settings(scope, attempt.settings)
        return ActionContext(
            input=seen.input,
            outputs=seen.outputs,
            results=seen.results,
            run_id=self._run_id,
            project_path=self._project_path,
            node_path=step.node_path,
            visit=step.visit,
            attempt_number=attempt.attempt_number,
            cancel=attempt.cancel,
            nodes=seen.nodes,
            publisher=self._updates.publisher(attempt),
            effect_key=effect_key(self._run_id, effect_type, step.node_path, step.visit),
            effect_attempt=effect_attempt,
            settings=settings.value,
            settings_scope_id=settings.scope_id,
            settings_change_number=settings.change_number,
        )

    def effect_request(self, node_path: str) -> Json:
        """Return the default request of a node's effect (the engine contract, section 6).

        Args:
            node_path: The node. Its own output of an earlier visit is left out: it goes with the
                first failed attempt of this one, and a retry asks for the same as before.
        """
        scope, own = scope_of(node_path), local_name(node_path)
        local = self._history.local(scope)
        outputs: dict[str, Json] = {
            name: canonical.decode_canonical(local.outputs[name])
            for name in sorted(local.outputs)
            if name != own
        }
        return {"input": self._input_of(scope), "outputs": outputs}

    def _seen(self, scope: str) -> _Seen:
        """Return what the workflow at a mount sees."""
        workflow = self._workflow.at(scope)
        local = self._history.local(scope)
        return _Seen(
            input=workflow.input_value(self._input_of(scope)),
            outputs=Outputs(local.outputs),
            results=MappingProxyType(local.results),
            nodes=workflow.nodes,
        )

    def _settings(self, scope: str, bound: Bound | None) -> _Settings:
        """Return the settings of a workflow as its functions see them."""
        settings = self._workflow.at(scope).settings
        if bound is None or settings is None:
            return _NONE
        stored = canonical.decode_canonical(bound.content)
        return _Settings(settings.value(stored), bound.scope_id, bound.change_number)

    def _input_of(self, scope: str) -> Json:
        """Return the input of the workflow at a mount: the run's, or that of its invocation."""
        return self._history.inputs[scope] if scope else self._input
