"""The workflow language of Pi Workflows: everything that a workflow file imports.

Names are looked up when they are first used, so that a server or a command that only needs another
part of the package does not load the language.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pi_workflows.authoring.agents import agent, assistant_message, decision
    from pi_workflows.authoring.commands import Command, ShellLine, ShellResult
    from pi_workflows.authoring.composition import (
        IncludedResult,
        exit,  # noqa: A004 - what authors call it
        include,
        included_result,
    )
    from pi_workflows.authoring.context import ActionContext, CancelSignal, Context, NodeResult
    from pi_workflows.authoring.decisions import (
        DecisionRequest,
        Timeout,
        choice,
        human_choices,
        human_decision,
        text_input,
    )
    from pi_workflows.authoring.define import define_workflow
    from pi_workflows.authoring.edges import decision_edge, edge, human_decision_edge, switch
    from pi_workflows.authoring.language import action, checkpoint, compute, shell
    from pi_workflows.authoring.loops import branch, control_loop
    from pi_workflows.authoring.notices import notify
    from pi_workflows.authoring.policies import Effect, Retry, idempotent_effect, manual_effect
    from pi_workflows.authoring.routes import settings_route
    from pi_workflows.authoring.settings import SettingsChange, allow, workflow_settings
    from pi_workflows.authoring.updates import Update
    from pi_workflows.authoring.workflow import Workflow
    from pi_workflows.base.canonical import Json
    from pi_workflows.base.errors import Problem, ProblemsFound
    from pi_workflows.definition.decision import Response
    from pi_workflows.definition.presentation import present
    from pi_workflows.definition.progress import Progress

__all__ = [
    "ActionContext",
    "CancelSignal",
    "Command",
    "Context",
    "DecisionRequest",
    "Effect",
    "IncludedResult",
    "Json",
    "NodeResult",
    "Problem",
    "ProblemsFound",
    "Progress",
    "Response",
    "Retry",
    "SettingsChange",
    "ShellLine",
    "ShellResult",
    "Timeout",
    "Update",
    "Workflow",
    "action",
    "agent",
    "allow",
    "assistant_message",
    "branch",
    "checkpoint",
    "choice",
    "compute",
    "control_loop",
    "decision",
    "decision_edge",
    "define_workflow",
    "edge",
    "exit",
    "human_choices",
    "human_decision",
    "human_decision_edge",
    "idempotent_effect",
    "include",
    "included_result",
    "manual_effect",
    "notify",
    "present",
    "settings_route",
    "shell",
    "switch",
    "text_input",
    "workflow_settings",
]

_MODULES: Final = {
    "ActionContext": "authoring.context",
    "CancelSignal": "authoring.context",
    "Command": "authoring.commands",
    "Context": "authoring.context",
    "DecisionRequest": "authoring.decisions",
    "Effect": "authoring.policies",
    "IncludedResult": "authoring.composition",
    "Json": "base.canonical",
    "NodeResult": "authoring.context",
    "Problem": "base.errors",
    "ProblemsFound": "base.errors",
    "Progress": "definition.progress",
    "Response": "definition.decision",
    "Retry": "authoring.policies",
    "SettingsChange": "authoring.settings",
    "ShellLine": "authoring.commands",
    "ShellResult": "authoring.commands",
    "Timeout": "authoring.decisions",
    "Update": "authoring.updates",
    "Workflow": "authoring.workflow",
    "action": "authoring.language",
    "agent": "authoring.agents",
    "allow": "authoring.settings",
    "assistant_message": "authoring.agents",
    "branch": "authoring.loops",
    "checkpoint": "authoring.language",
    "choice": "authoring.decisions",
    "compute": "authoring.language",
    "control_loop": "authoring.loops",
    "decision": "authoring.agents",
    "decision_edge": "authoring.edges",
    "define_workflow": "authoring.define",
    "edge": "authoring.edges",
    "exit": "authoring.composition",
    "human_choices": "authoring.decisions",
    "human_decision": "authoring.decisions",
    "human_decision_edge": "authoring.edges",
    "idempotent_effect": "authoring.policies",
    "include": "authoring.composition",
    "included_result": "authoring.composition",
    "manual_effect": "authoring.policies",
    "notify": "authoring.notices",
    "present": "definition.presentation",
    "settings_route": "authoring.routes",
    "shell": "authoring.language",
    "switch": "authoring.edges",
    "text_input": "authoring.decisions",
    "workflow_settings": "authoring.settings",
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
