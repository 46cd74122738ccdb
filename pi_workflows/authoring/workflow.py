"""A defined workflow: what a workflow file exposes as `workflow`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Generic, TypeVar, cast

from pydantic import BaseModel

from pi_workflows.authoring.composition import Exit, Include
from pi_workflows.authoring.nodes import AnyNode, plain_json
from pi_workflows.authoring.outputs import OutputModel
from pi_workflows.authoring.settings import Settings
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Problem, ProblemsFound
from pi_workflows.definition.digest import definition_digest
from pi_workflows.definition.paths import joined
from pi_workflows.definition.snapshot import Snapshot

InputT = TypeVar("InputT", bound=BaseModel)


@dataclass(frozen=True, eq=False)
class Workflow(Generic[InputT]):
    """A definition, made by `define_workflow`.

    Attributes:
        input_model: The model of the run's input.
        nodes: The nodes by name.
        title: A run's title, or what makes one of its input.
        own: Its own part of the definition, by the names that its author uses.
        includes: The included workflows by name.
        exits: The ways out for workflows that include this one, by name.
        file: The file that defines it.
        settings: What people may change about its runs.
    """

    input_model: type[InputT]
    nodes: Mapping[str, AnyNode]
    title: str | Callable[[InputT], str] | None
    own: Snapshot
    includes: Mapping[str, Include]
    exits: Mapping[str, Exit]
    file: str
    settings: Settings[BaseModel] | None = None

    @property
    def name(self) -> str:
        """The workflow's name."""
        return self.own.name

    @property
    def is_resolved(self) -> bool:
        """Whether every workflow that it includes, at any depth, is there."""
        return all(
            include.workflow is not None and include.workflow.is_resolved
            for include in self.includes.values()
        )

    @cached_property
    def snapshot(self) -> Snapshot:
        """Everything about the definition that is not code, with all that it includes.

        Raises:
            ProblemsFound: `includeUnresolved`: it includes others by reference, and nothing has
                loaded them yet.
        """
        # Imported here because flattening is written in terms of this class.
        from pi_workflows.authoring.flattening import flattened  # noqa: PLC0415

        if not self.is_resolved:
            problem = Problem(
                "includeUnresolved",
                "includes",
                f"{self.name} includes workflows by reference: load its file to resolve them",
            )
            raise ProblemsFound([problem], code="includeUnresolved")
        return flattened(self).snapshot

    @cached_property
    def digest(self) -> str:
        """The definition digest, `sha256:` and hex."""
        return definition_digest(self.snapshot)

    @cached_property
    def node_by_path(self) -> dict[str, AnyNode]:
        """The nodes by full path, those of the included workflows too."""
        found = dict(self.nodes)
        for name, child in self.included():
            found |= {joined(name, path): node for path, node in child.node_by_path.items()}
        return found

    def included(self) -> Iterator[tuple[str, Workflow[BaseModel]]]:
        """Yield the included workflows that are resolved, with the names that they have here."""
        for name, include in self.includes.items():
            if include.workflow is not None:
                yield name, include.workflow

    def at(self, mount: str) -> Workflow[BaseModel]:
        """Return the workflow at a mount; this one at the empty path."""
        found = cast("Workflow[BaseModel]", self)
        for name in mount.split("/") if mount else ():
            child = found.includes[name].workflow
            assert child is not None, mount
            found = child
        return found

    def with_included(self, workflows: Mapping[str, Workflow[BaseModel]]) -> Workflow[InputT]:
        """Return the definition with these workflows under their names."""
        return replace(
            self,
            includes=MappingProxyType(
                {
                    name: replace(include, workflow=workflows.get(name, include.workflow))
                    for name, include in self.includes.items()
                }
            ),
        )

    def exit_model(self, name: str) -> OutputModel | None:
        """Return the model of what an exit gives, None for plain JSON.

        Args:
            name: One of the exits.
        """
        declared = self.exits[name]
        if declared.output is not None:
            return declared.output
        mount, dot, inner = declared.node.partition(".")
        if not dot:
            node = self.nodes.get(declared.node)
            return None if node is None else node.output
        child = self.includes[mount].workflow
        return None if child is None else child.exit_model(inner)

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

    def mapped_input(self, value: object) -> Json:
        """Return an input that an including workflow's function made, checked, as JSON.

        Raises:
            ProblemsFound: It does not fit the model (`includeInputInvalid`).
            PayloadInvalid: It is no JSON.
        """
        instance = self._input.accept(plain_json(value), field="input", code="includeInputInvalid")
        return self.input_json(cast("InputT", instance))

    def input_value(self, stored: Json) -> InputT:
        """Return a run's stored input as the author's functions see it.

        Raises:
            ProblemsFound: It no longer fits the model (`outputInvalid`).
        """
        return cast("InputT", self._input.value(stored, field="input"))

    def input_json(self, value: InputT) -> Json:
        """Return an input as it is stored: the model's JSON."""
        return cast("Json", value.model_dump(mode="json"))
