"""The constructors of nodes. A node keeps its mistakes; `define_workflow` reports them all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, overload

from pydantic import BaseModel

from pi_workflows.authoring.commands import Command, ShellResult
from pi_workflows.authoring.context import ActionContext, Context
from pi_workflows.authoring.declared import (
    command_problems,
    common_problems,
    declared_model,
    effect_problems,
    function_problems,
    name_problems,
    output_model,
    output_without_parse,
    retry_problems,
    text_problems,
)
from pi_workflows.authoring.nodes import (
    ActionNode,
    CheckpointNode,
    ComputeNode,
    LineReader,
    ShellNode,
)
from pi_workflows.authoring.outputs import OutputModel
from pi_workflows.authoring.policies import (
    TIMEOUT_DEFAULT,
    Effect,
    Retry,
    TimeLimit,
)
from pi_workflows.base.canonical import Json
from pi_workflows.base.limits import SUMMARY_CHARS_MAX

OutputT = TypeVar("OutputT")
ModelT = TypeVar("ModelT", bound=BaseModel)

# Stands in a node whose effect is missing until its problem is reported; such a node never runs.
_EFFECT_MISSING = Effect("undeclared", "manual")


class ComputeDecorator(Protocol):
    """Makes a compute node of the function below it."""

    @overload
    def __call__(
        self, function: Callable[[Context[Any]], Awaitable[OutputT]], /
    ) -> ComputeNode[OutputT]: ...
    @overload
    def __call__(self, function: Callable[[Context[Any]], OutputT], /) -> ComputeNode[OutputT]: ...


class ActionDecorator(Protocol):
    """Makes an action of the function below it."""

    @overload
    def __call__(
        self, function: Callable[[ActionContext[Any]], Awaitable[OutputT]], /
    ) -> ActionNode[OutputT]: ...
    @overload
    def __call__(
        self, function: Callable[[ActionContext[Any]], OutputT], /
    ) -> ActionNode[OutputT]: ...


@overload
def compute(
    function: Callable[[Context[Any]], Awaitable[OutputT]],
    /,
    *,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> ComputeNode[OutputT]: ...
@overload
def compute(
    function: Callable[[Context[Any]], OutputT],
    /,
    *,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> ComputeNode[OutputT]: ...
@overload
def compute(
    function: Callable[[Context[Any]], object],
    /,
    *,
    output: type[ModelT],
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> ComputeNode[ModelT]: ...
@overload
def compute(
    *,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> ComputeDecorator: ...
@overload
def compute(
    *,
    output: type[ModelT],
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> Callable[[Callable[[Context[Any]], object]], ComputeNode[ModelT]]: ...
def compute(
    function: Callable[[Context[Any]], object] | None = None,
    /,
    *,
    output: type[BaseModel] | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> object:
    """Make a node of a pure function; without a function, return a decorator.

    Args:
        function: Takes the context and returns the output: JSON, or a pydantic model. Plain
            functions run in a thread. It may run again after a crash, so it changes nothing
            outside.
        output: The model that the output must fit; by default the one that the return annotation
            names.
        timeout: Active time of one attempt; None = no limit.
        retry: When a visit is tried again.
        status_detail: What people read while it runs, at most 200 characters.

    Returns:
        The node, for `define_workflow(nodes=...)`.
    """

    def build(target: Callable[[Context[Any]], object]) -> ComputeNode[object]:
        return ComputeNode(
            function=target,
            output=output_model(output, target),
            timeout=timeout,
            retry=retry,
            status_detail=status_detail,
            problems=(
                *function_problems(target, "the function"),
                *common_problems(timeout, output, status_detail),
                *retry_problems(retry),
            ),
        )

    return build if function is None else build(function)


@overload
def action(
    function: Callable[[ActionContext[Any]], Awaitable[OutputT]],
    /,
    *,
    effect: Effect,
    request: Callable[[Context[Any]], object] | None = None,
    approved_by: str | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> ActionNode[OutputT]: ...
@overload
def action(
    function: Callable[[ActionContext[Any]], OutputT],
    /,
    *,
    effect: Effect,
    request: Callable[[Context[Any]], object] | None = None,
    approved_by: str | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> ActionNode[OutputT]: ...
@overload
def action(
    function: Callable[[ActionContext[Any]], object],
    /,
    *,
    output: type[ModelT],
    effect: Effect,
    request: Callable[[Context[Any]], object] | None = None,
    approved_by: str | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> ActionNode[ModelT]: ...
@overload
def action(
    *,
    effect: Effect,
    request: Callable[[Context[Any]], object] | None = None,
    approved_by: str | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> ActionDecorator: ...
@overload
def action(
    *,
    output: type[ModelT],
    effect: Effect,
    request: Callable[[Context[Any]], object] | None = None,
    approved_by: str | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> Callable[[Callable[[ActionContext[Any]], object]], ActionNode[ModelT]]: ...
def action(
    function: Callable[[ActionContext[Any]], object] | None = None,
    /,
    *,
    effect: Effect | None = None,
    output: type[BaseModel] | None = None,
    request: Callable[[Context[Any]], object] | None = None,
    approved_by: str | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> object:
    """Make a node of a function with an effect; without a function, return a decorator.

    Args:
        function: Takes the action context and returns the output: JSON, or a pydantic model.
        effect: `idempotent_effect("type")` when repeating is harmless, else
            `manual_effect("type")`. Required.
        output: The model that the output must fit; by default the one that the return annotation
            names.
        request: Builds what the effect asks for, from the context; the same for every try of a
            visit. By default the input and the outputs.
        approved_by: The name of the `human_decision` that has to have approved exactly this
            request: its subject. When the request is another one, the decision is asked again.
        timeout: Active time of one attempt; None = no limit.
        retry: When a visit is tried again; never with a manual effect.
        status_detail: What people read while it runs, at most 200 characters.

    Returns:
        The node, for `define_workflow(nodes=...)`.
    """

    def build(target: Callable[[ActionContext[Any]], object]) -> ActionNode[object]:
        return ActionNode(
            function=target,
            effect=effect if isinstance(effect, Effect) else _EFFECT_MISSING,
            output=output_model(output, target),
            request=request,
            approved_by=approved_by,
            timeout=timeout,
            retry=retry,
            status_detail=status_detail,
            problems=(
                *function_problems(target, "the function"),
                *effect_problems(effect),
                *(function_problems(request, "request") if request is not None else ()),
                *name_problems("approved_by", approved_by),
                *common_problems(timeout, output, status_detail),
                *retry_problems(retry),
            ),
        )

    return build if function is None else build(function)


@overload
def shell(
    command: Command | Callable[[ActionContext[Any]], Command],
    *,
    effect: Effect,
    parse: None = None,
    updates: LineReader | None = None,
    allow_non_zero_exit: bool = False,
    approved_by: str | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> ShellNode[ShellResult]: ...
@overload
def shell(
    command: Command | Callable[[ActionContext[Any]], Command],
    *,
    effect: Effect,
    parse: Callable[[ShellResult], OutputT],
    updates: LineReader | None = None,
    allow_non_zero_exit: bool = False,
    approved_by: str | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> ShellNode[OutputT]: ...
@overload
def shell(
    command: Command | Callable[[ActionContext[Any]], Command],
    *,
    effect: Effect,
    parse: Callable[[ShellResult], object],
    output: type[ModelT],
    updates: LineReader | None = None,
    allow_non_zero_exit: bool = False,
    approved_by: str | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> ShellNode[ModelT]: ...
def shell(
    command: Command | Callable[[ActionContext[Any]], Command],
    *,
    effect: Effect | None = None,
    parse: Callable[[ShellResult], object] | None = None,
    output: type[BaseModel] | None = None,
    updates: LineReader | None = None,
    allow_non_zero_exit: bool = False,
    approved_by: str | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> object:
    """Make a node of a command, which runs in its own process group.

    Args:
        command: The command, or a function of the context that builds it.
        effect: `idempotent_effect("type")` when repeating is harmless (a command that only reads
            is), else `manual_effect("type")`. Required.
        parse: Makes the output of the command's result. When it fails the node fails; a retry
            parses the same result again and does not repeat the command.
        output: The model that the parsed output must fit; by default the one that `parse` is
            annotated with.
        updates: Turns each line that the command writes into a progress update, or None for no
            update.
        allow_non_zero_exit: Whether an exit code other than 0 is still a success.
        approved_by: The name of the `human_decision` that has to have approved exactly this
            command: its subject is `command.request(ctx.project_path)`. When the command is another
            one, the decision is asked again.
        timeout: Active time of one attempt, at whose end the whole process tree is ended;
            None = no limit.
        retry: When a visit is tried again; never with a manual effect.
        status_detail: What people read while it runs, at most 200 characters.

    Returns:
        The node, for `define_workflow(nodes=...)`.
    """
    shaped = OutputModel.of(ShellResult) if parse is None else output_model(output, parse)
    node: ShellNode[object] = ShellNode(
        command=command,
        effect=effect if isinstance(effect, Effect) else _EFFECT_MISSING,
        output=shaped,
        parse=parse,
        updates=updates,
        allow_non_zero_exit=allow_non_zero_exit,
        approved_by=approved_by,
        timeout=timeout,
        retry=retry,
        status_detail=status_detail,
        problems=(
            *command_problems(command),
            *effect_problems(effect),
            *(function_problems(parse, "parse") if parse is not None else ()),
            *(function_problems(updates, "updates") if updates is not None else ()),
            *name_problems("approved_by", approved_by),
            *output_without_parse(output, parse),
            *common_problems(timeout, output, status_detail),
            *retry_problems(retry),
        ),
    )
    return node


@overload
def checkpoint(
    summary: str,
    *,
    output: type[ModelT],
    run: Callable[[Context[Any]], object] | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
) -> CheckpointNode[ModelT]: ...
@overload
def checkpoint(
    summary: str,
    *,
    output: None = None,
    run: Callable[[Context[Any]], object] | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
) -> CheckpointNode[Json]: ...
def checkpoint(
    summary: str,
    *,
    output: type[BaseModel] | None = None,
    run: Callable[[Context[Any]], object] | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
) -> object:
    """Make a node that waits for an answer; the answer is its output and the same run goes on.

    Args:
        summary: The question in one line, at most 1,000 characters.
        output: The model that the answer must fit before it is accepted; None = any JSON value.
        run: Builds what is shown with the question, once per visit, from the context.
        timeout: Active time of `run`; waiting for the answer costs none.

    Returns:
        The node, for `define_workflow(nodes=...)`.
    """
    node: CheckpointNode[object] = CheckpointNode(
        summary=summary,
        function=run,
        output=declared_model(output),
        timeout=timeout,
        problems=(
            *text_problems("summaryInvalid", "summary", summary, SUMMARY_CHARS_MAX),
            *(function_problems(run, "run") if run is not None else ()),
            *common_problems(timeout, output, None),
        ),
    )
    return node
