"""The constructor of notifications: texts for the session that a run belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, overload

from pi_workflows.authoring.agents import TextFunction
from pi_workflows.authoring.declared import common_problems, function_problems, retry_problems
from pi_workflows.authoring.nodes import NotifyNode
from pi_workflows.authoring.policies import TIMEOUT_DEFAULT, Retry, TimeLimit
from pi_workflows.base.errors import Problem
from pi_workflows.definition.snapshot import NoticeKind

_Decorator: TypeAlias = Callable[[TextFunction], NotifyNode[str]]


@overload
def notify(
    function: TextFunction,
    /,
    *,
    kind: NoticeKind,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> NotifyNode[str]: ...
@overload
def notify(
    *,
    kind: NoticeKind,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> _Decorator: ...
def notify(
    function: TextFunction | None = None,
    /,
    *,
    kind: NoticeKind,
    timeout: TimeLimit = TIMEOUT_DEFAULT,
    retry: Retry | None = None,
    status_detail: str | None = None,
) -> object:
    """Make a node that tells the run's session something; without a function, a decorator.

    It starts no turn of the model. A run without a session keeps the text as the node's output.

    Args:
        function: Takes the context and returns the text, at most 64,000 characters. It may run
            again after a crash; the session is told once.
        kind: `progress` for one of several, `final` for the last word.
        timeout: Active time of one attempt; None = no limit.
        retry: When a visit is tried again.
        status_detail: What people read while it runs, at most 200 characters.

    Returns:
        The node, for `define_workflow(nodes=...)`; its output is the text.
    """

    def build(target: TextFunction) -> NotifyNode[str]:
        return NotifyNode(
            function=target,
            kind=kind if kind in ("progress", "final") else "progress",
            timeout=timeout,
            retry=retry,
            status_detail=status_detail,
            problems=(
                *function_problems(target, "the function"),
                *_kind_problems(kind),
                *common_problems(timeout, None, status_detail),
                *retry_problems(retry),
            ),
        )

    return build if function is None else build(function)


def _kind_problems(kind: object) -> Iterator[Problem]:
    if kind not in ("progress", "final"):
        yield Problem("notifyKindInvalid", "", f"kind is {kind!r:.60}: use 'progress' or 'final'")
