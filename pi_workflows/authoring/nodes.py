"""The nodes that authors write, as the runner executes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from pydantic import BaseModel

from pi_workflows.authoring.commands import Command, ShellLine, ShellResult
from pi_workflows.authoring.context import ActionContext, Context
from pi_workflows.authoring.outputs import OutputModel
from pi_workflows.authoring.policies import (
    TIMEOUT_DEFAULT,
    Effect,
    Retry,
    TimeLimit,
)
from pi_workflows.authoring.updates import Update
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Problem
from pi_workflows.definition.decision import DecisionPolicy
from pi_workflows.definition.progress import Progress
from pi_workflows.definition.snapshot import AssistantOutput, NoticeKind

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

    timeout: TimeLimit = TIMEOUT_DEFAULT
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
        is_settings_route: Whether it computes again when the settings changed under it.
    """

    function: NodeFunction
    retry: Retry | None = None
    is_settings_route: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class ActionNode(Node[OutputT_co]):
    """A function with a declared effect.

    Attributes:
        function: What applies the effect; plain or async.
        effect: What it does to the world.
        request: Builds the effect's request, which every try must repeat; by default the input and
            the outputs.
        approved_by: The name of the decision whose subject the request must be.
        retry: When a visit is tried again.
    """

    function: ActionFunction
    effect: Effect
    request: NodeFunction | None = None
    approved_by: str | None = None
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
        approved_by: The name of the decision whose subject the command's request must be.
        retry: When a visit is tried again.
    """

    command: CommandSource
    effect: Effect
    parse: Callable[[ShellResult], object] | None = None
    updates: LineReader | None = None
    allow_non_zero_exit: bool = False
    approved_by: str | None = None
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


@dataclass(frozen=True, kw_only=True, eq=False)
class HumanDecisionNode(Node[OutputT_co]):
    """A question that only a proved person, or the declared policy, may answer.

    Attributes:
        function: Builds the decision, once per visit.
        policy: Whom it asks, for what, and what happens when nobody answers.
    """

    function: NodeFunction
    policy: DecisionPolicy


@dataclass(frozen=True, kw_only=True, eq=False)
class AgentNode(Node[OutputT_co]):
    """A step that a model takes; what it submits, or says, is the output.

    Attributes:
        prompt: What the model is told, or what builds it from the context.
        expected: What it gives, in words, or that its visible text is the output; None when the
            model of the output says it all.
        validate: Makes the output of what the model submitted, or refuses it.
        choices: The values that `choice_field` may have.
        choice_field: The member of the output that holds the choice.
        allowed_tools: The tools that it may use beside the workflow's own; None = all.
        prompt_chars_max: The greatest length of its prompt; None = the usual one.
        retry: When a visit is tried again.
    """

    prompt: str | NodeFunction
    expected: str | AssistantOutput | None = None
    validate: Callable[[Any], object] | None = None
    choices: tuple[str, ...] | None = None
    choice_field: str | None = None
    allowed_tools: tuple[str, ...] | None = None
    prompt_chars_max: int | None = None
    retry: Retry | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class NotifyNode(Node[OutputT_co]):
    """A text for the session that the run belongs to.

    Attributes:
        function: Builds the text, which is also the output.
        kind: Whether it is one of several or the last word.
        retry: When a visit is tried again.
    """

    function: NodeFunction
    kind: NoticeKind
    retry: Retry | None = None


NODE_CLASSES: Final = (
    AgentNode,
    ComputeNode,
    NotifyNode,
    ActionNode,
    ShellNode,
    CheckpointNode,
    HumanDecisionNode,
)
"""Every class of node that a definition may have."""

AnyNode: TypeAlias = (
    AgentNode[object]
    | ComputeNode[object]
    | NotifyNode[object]
    | ActionNode[object]
    | ShellNode[object]
    | CheckpointNode[object]
    | HumanDecisionNode[object]
)
