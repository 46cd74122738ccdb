"""The workflow language of Pi Workflows: everything that a workflow file imports.

Names are looked up when they are first used, so that a server or a command that only needs another
part of the package does not load the language.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pi_workflows.authoring.commands import Command, ShellLine, ShellResult
    from pi_workflows.authoring.context import ActionContext, CancelSignal, Context, NodeResult
    from pi_workflows.authoring.define import define_workflow
    from pi_workflows.authoring.edges import edge, switch
    from pi_workflows.authoring.language import action, checkpoint, compute, shell
    from pi_workflows.authoring.policies import (
        Effect,
        Retry,
        idempotent_effect,
        manual_effect,
    )
    from pi_workflows.authoring.updates import Progress, Update
    from pi_workflows.authoring.workflow import Workflow
    from pi_workflows.base.canonical import Json
    from pi_workflows.base.errors import Problem, ProblemsFound

__all__ = [
    "ActionContext",
    "CancelSignal",
    "Command",
    "Context",
    "Effect",
    "Json",
    "NodeResult",
    "Problem",
    "ProblemsFound",
    "Progress",
    "Retry",
    "ShellLine",
    "ShellResult",
    "Update",
    "Workflow",
    "action",
    "checkpoint",
    "compute",
    "define_workflow",
    "edge",
    "idempotent_effect",
    "manual_effect",
    "shell",
    "switch",
]

_MODULES: Final = {
    "ActionContext": "authoring.context",
    "CancelSignal": "authoring.context",
    "Command": "authoring.commands",
    "Context": "authoring.context",
    "Effect": "authoring.policies",
    "Json": "base.canonical",
    "NodeResult": "authoring.context",
    "Problem": "base.errors",
    "ProblemsFound": "base.errors",
    "Progress": "authoring.updates",
    "Retry": "authoring.policies",
    "ShellLine": "authoring.commands",
    "ShellResult": "authoring.commands",
    "Update": "authoring.updates",
    "Workflow": "authoring.workflow",
    "action": "authoring.language",
    "checkpoint": "authoring.language",
    "compute": "authoring.language",
    "define_workflow": "authoring.define",
    "edge": "authoring.edges",
    "idempotent_effect": "authoring.policies",
    "manual_effect": "authoring.policies",
    "shell": "authoring.language",
    "switch": "authoring.edges",
}


def __getattr__(name: str) -> object:
    """Return a public name from the module that defines it, and keep it here."""
    if name not in _MODULES:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    value: object = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted({*globals(), *__all__})
