"""A defined workflow: what a workflow file exposes as `workflow`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar, cast

from pydantic import BaseModel

from pi_workflows.authoring.nodes import AnyNode
from pi_workflows.authoring.outputs import OutputModel
from pi_workflows.base.canonical import Json
from pi_workflows.definition.digest import definition_digest
from pi_workflows.definition.snapshot import Snapshot

InputT = TypeVar("InputT", bound=BaseModel)


@dataclass(frozen=True, eq=False)
class Workflow(Generic[InputT]):
    """A sound definition, made by `define_workflow`.

    Attributes:
        input_model: The model of the run's input.
        nodes: The nodes by name.
        title: A run's title, or what makes one of its input.
        snapshot: Everything about the definition that is not code.
    """

    input_model: type[InputT]
    nodes: Mapping[str, AnyNode]
    title: str | Callable[[InputT], str] | None
    snapshot: Snapshot

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self.snapshot.name

    @cached_property
    def digest(self) -> str:
        """The definition digest, `sha256:` and hex."""
        return definition_digest(self.snapshot)

    @cached_property
    def _input(self) -> OutputModel:
        return OutputModel.of(self.input_model)

    def accept_input(self, candidate: Json) -> InputT:
        """Return an input that a person wrote, checked.

        Raises:
            ProblemsFound: It does not fit the model (`inputInvalid`); each problem names the path,
                such as `input.repo`.
        """
        instance = self._input.accept(candidate, field="input", code="inputInvalid")
        return cast("InputT", instance)

    def input_value(self, stored: Json) -> InputT:
        """Return a run's stored input as the author's functions see it.

        Raises:
            ProblemsFound: It no longer fits the model (`outputInvalid`).
        """
        return cast("InputT", self._input.value(stored, field="input"))

    def input_json(self, value: InputT) -> Json:
        """Return an input as it is stored: the model's JSON."""
        return cast("Json", value.model_dump(mode="json"))
