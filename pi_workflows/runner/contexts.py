"""What an author's function is given for one attempt."""

from __future__ import annotations

from types import MappingProxyType

from pydantic import BaseModel

from pi_workflows.authoring.context import ActionContext, CancelSignal, Context
from pi_workflows.authoring.workflow import Workflow
from pi_workflows.base.canonical import Json
from pi_workflows.definition.effects import effect_key
from pi_workflows.runner.attempts import Attempt
from pi_workflows.runner.history import History, Outputs
from pi_workflows.runner.plan import Enter
from pi_workflows.runner.updates import Updates


class Contexts:
    """Makes the contexts of one run.

    Each has an input and outputs of its own: changing them changes nothing else.
    """

    def __init__(
        self,
        run_id: str,
        workflow: Workflow[BaseModel],
        run_input: Json,
        history: History,
        updates: Updates,
    ) -> None:
        """Make contexts of a run.

        Args:
            run_id: The run.
            workflow: Its definition.
            run_input: Its input as it is stored.
            history: What it has done.
            updates: Where its nodes publish.
        """
        self._run_id = run_id
        self._workflow = workflow
        self._input = run_input
        self._history = history
        self._updates = updates
        self._results = MappingProxyType(history.results)

    def of(self, attempt: Attempt) -> Context[BaseModel]:
        """Return the context of an attempt."""
        return Context(
            input=self._workflow.input_value(self._input),
            outputs=Outputs(self._history.outputs),
            results=self._results,
            run_id=self._run_id,
            node_path=attempt.step.node_path,
            visit=attempt.step.visit,
            attempt_number=attempt.attempt_number,
            cancel=attempt.cancel,
            nodes=self._workflow.nodes,
            publisher=self._updates.publisher(attempt),
        )

    def before(self, step: Enter) -> Context[BaseModel]:
        """Return the context for what is computed before an attempt begins; it cannot publish."""
        return Context(
            input=self._workflow.input_value(self._input),
            outputs=Outputs(self._history.outputs),
            results=self._results,
            run_id=self._run_id,
            node_path=step.node_path,
            visit=step.visit,
            attempt_number=self._history.attempts.get(step.node_path, 0) + 1,
            cancel=CancelSignal(),
            nodes=self._workflow.nodes,
            publisher=self._updates.publisher(None),
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
        return ActionContext(
            input=self._workflow.input_value(self._input),
            outputs=Outputs(self._history.outputs),
            results=self._results,
            run_id=self._run_id,
            node_path=step.node_path,
            visit=step.visit,
            attempt_number=attempt.attempt_number,
            cancel=attempt.cancel,
            nodes=self._workflow.nodes,
            publisher=self._updates.publisher(attempt),
            effect_key=effect_key(self._run_id, effect_type, step.node_path, step.visit),
            effect_attempt=effect_attempt,
        )

    def effect_request(self, node_path: str) -> Json:
        """Return the default request of a node's effect (the engine contract, section 6).

        Args:
            node_path: The node. Its own output of an earlier visit is left out: it goes with the
                first failed attempt of this one, and a retry asks for the same as before.
        """
        outputs: dict[str, Json] = {
            path: self._history.output(path)
            for path in sorted(self._history.outputs)
            if path != node_path
        }
        return {"input": self._input, "outputs": outputs}
