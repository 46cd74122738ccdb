"""Finding and reading workflows.

Payloads and answers. Workflow code is loaded in resolver children only.
"""

from __future__ import annotations

from typing import Literal

from pi_workflows.definition.source import SourceFile, WorkflowSource
from pi_workflows.protocol.runner import Mount
from pi_workflows.protocol.wire import (
    AbsolutePath,
    AnyJson,
    DefinitionDigest,
    JsonObject,
    Many,
    Maybe,
    Payload,
    Text,
    WireModel,
)


class WorkflowList(Payload):
    """`workflow.list`: every workflow that a project sees by name."""

    project_path: AbsolutePath


class WorkflowCheck(Payload):
    """`workflow.check`: is this a workflow, and which one?"""

    project_path: AbsolutePath
    target: Text


class WorkflowResolve(Payload):
    """`workflow.resolve`: the same, and is this an input for it?"""

    project_path: AbsolutePath
    target: Text
    input: AnyJson = None


class WorkflowItem(WireModel):
    """A workflow by name. `shadowed_by` is the path of the file that has the name first."""

    name: Text
    source: Literal["project", "user", "builtin"]
    path: Text
    summary: str
    shadowed_by: Maybe[Text] = None
    error: Maybe[Text] = None


class WorkflowItems(WireModel):
    """Answer of `workflow.list`."""

    items: Many[WorkflowItem]


class WorkflowResolved(WireModel):
    """Answer of `workflow.resolve` and, without input, of `workflow.check`.

    `run.start` carries it. `mounts` says where each included workflow comes from.
    """

    workflow_name: Text
    workflow_source_ref: Text
    workflow_source: WorkflowSource
    source_files: Many[SourceFile]
    mounts: Maybe[Many[Mount]] = None
    definition_digest: DefinitionDigest
    definition_snapshot: JsonObject
    input: AnyJson = None
    title: Maybe[Text] = None
