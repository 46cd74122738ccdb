"""The node that chooses a way by the settings of the moment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from pydantic import BaseModel

from pi_workflows.authoring.context import Context
from pi_workflows.authoring.declared import common_problems, function_problems, output_model
from pi_workflows.authoring.nodes import ComputeNode
from pi_workflows.authoring.policies import TIMEOUT_DEFAULT, TimeLimit

OutputT = TypeVar("OutputT")
ModelT = TypeVar("ModelT", bound=BaseModel)


@overload
def settings_route(
    function: Callable[[Context[Any]], OutputT],
    /,
    *,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    status_detail: str | None = None,
) -> ComputeNode[OutputT]: ...
@overload
def settings_route(
    function: Callable[[Context[Any]], object],
    /,
    *,
    output: type[ModelT],
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    status_detail: str | None = None,
) -> ComputeNode[ModelT]: ...
def settings_route(
    function: Callable[[Context[Any]], object],
    /,
    *,
    output: type[BaseModel] | None = None,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    status_detail: str | None = None,
) -> object:
    """Make a node that chooses by the settings, and chooses again when they changed meanwhile.

    Every other node keeps what it made of the settings that it began with. The choice of this one
    counts only if they are still the ones when it is committed; else its function runs again with
    the new ones, as another attempt of the same visit that takes no step.

    Args:
        function: A pure function of the context; it returns the output, which a `switch` reads.
        output: The model that the output must fit; by default the one that the return annotation
            names.
        timeout: Active time of one attempt; None = no limit.
        status_detail: What people read while it runs, at most 200 characters.

    Returns:
        The node, for `define_workflow(nodes=...)`; also usable as a decorator without arguments.
    """
    node: ComputeNode[object] = ComputeNode(
        function=function,
        output=output_model(output, function),
        timeout=timeout,
        status_detail=status_detail,
        is_settings_route=True,
        problems=(
            *function_problems(function, "the function"),
            *common_problems(timeout, output, status_detail),
        ),
    )
    return node
