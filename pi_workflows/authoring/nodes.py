"""The nodes that authors write, as the runner executes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar, cast

from pydantic import BaseModel

from pi_workflows.authoring.commands import Command, ShellLine, ShellResult
from pi_workflows.authoring.context import ActionContext, Context
from pi_workflows.authoring.outputs import OutputModel
from pi_workflows.authoring.policies import (
    TIMEOUT_DEFAULT,
    Effect,
    Retry,
    Timeout,
)
from pi_workflows.authoring.updates import Progress, Update
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Problem

OutputT_co = TypeVar("OutputT_co", covariant=True)

# A function may be plain (run in a thread) or async; what it returns is checked when it has
# returned.
NodeFunction: TypeAlias = Callable[[Context[Any]], object]
ActionFunction: TypeAlias = Callable[[ActionContext[Any]], object]
CommandSource: TypeAlias = Command | Callable[[ActionContext[Any]], object]
LineReader: TypeAlias = Callable[[ShellLine], Progress | Update | None]


@dataclass(frozen=True, kw_only=True, eq=False)
class Node(Generic[OutputT_co]):
    """What all nodes have. A node is itself: two nodes are never equal.

    Attributes:
        timeout: Active time of one attempt: fixed, computed from the context, or None for no limit.
        output: The model that the output or answer must fit; None for any JSON value.
        status_detail: What people read while the node runs.
        problems: Mistakes that the constructor found; `define_workflow` reports them with the
            node's name.
    """

    timeout: Timeout = TIMEOUT_DEFAULT
    output: OutputModel | None = None
    status_detail: str | None = None
    problems: tuple[Problem, ...] = ()

    def output_json(self, value: object, *, field: str = "output") -> Json:
        """Return what the author's function returned, or a person answered, as the JSON to store.

        Args:
            value: The returned value: a model, or plain JSON.
            field: What errors call it.

        Returns:
            The value as `model_dump(mode="json")` gives it, or unchanged without a model:
            `canonical.encode` then refuses what is not JSON.

        Raises:
            ProblemsFound: It does not fit the model (`outputInvalid`).
        """
        if self.output is None:
            return plain_json(value)
        return self.output.json(value, field=field)

    def accept_answer(self, candidate: Json, *, field: str = "answer") -> Json:
        """Return an answer that a person wrote, checked, as the JSON to store.

        Raises:
            ProblemsFound: It does not fit the model (`answerInvalid`); each problem names the path.
        """
        if self.output is None:
            return candidate
        instance = self.output.accept(candidate, field=field, code="answerInvalid")
        return self.output.json(instance, field=field)

    def output_value(self, stored: Json, *, field: str = "output") -> OutputT_co:
        """Return a stored output as the author's functions see it: a model instance, or JSON.

        Raises:
            ProblemsFound: It does not fit the model (`outputInvalid`).
        """
        if self.output is None:
            return cast("OutputT_co", stored)
        return cast("OutputT_co", self.output.value(stored, field=field))


def plain_json(value: object) -> Json:
    """Return a value, a model dumped; what is not JSON then is left for the encoder to refuse."""
    if isinstance(value, BaseModel):
        return cast("Json", value.model_dump(mode="json"))
    return cast("Json", value)


@dataclass(frozen=True, kw_only=True, eq=False)
class ComputeNode(Node[OutputT_co]):
    """A pure function of the context; it may run again after a crash.

    Attributes:
        function: What it computes; plain or async.
        retry: When a visit is tried again.
    """

    function: NodeFunction
    retry: Retry | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ActionNode(Node[OutputT_co]):
    """A function with a declared effect.

    Attributes:
        function: What applies the effect; plain or async.
        effect: What it does to the world.
        request: Builds the effect's request, which every try must repeat; by default the input and
            the outputs.
        retry: When a visit is tried again.
    """

    function: ActionFunction
    effect: Effect
    request: NodeFunction | None = None
    retry: Retry | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class ShellNode(Node[OutputT_co]):
    """A command with a declared effect.

    Attributes:
        command: The command, or what builds it from the context.
        effect: What it does to the world; a command that only reads is idempotent.
        parse: Makes the output of the command's result; by default the output is the result itself.
        updates: Turns lines into updates while the command runs.
        allow_non_zero_exit: Whether an exit code other than 0 is still a success.
        retry: When a visit is tried again.
    """

    command: CommandSource
    effect: Effect
    parse: Callable[[ShellResult], object] | None = None
    updates: LineReader | None = None
    allow_non_zero_exit: bool = False
    retry: Retry | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckpointNode(Node[OutputT_co]):
    """A question to a person; the answer is the node's output.

    Attributes:
        summary: The question in one line.
        function: Builds the content shown with it, once per visit; it does not complete the node.
    """

    summary: str
    function: NodeFunction | None = None


AnyNode: TypeAlias = (
    ComputeNode[object] | ActionNode[object] | ShellNode[object] | CheckpointNode[object]
)
