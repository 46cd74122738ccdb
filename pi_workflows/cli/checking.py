"""`check` and `workflows`: what can be said about workflows without a server."""

from __future__ import annotations

from pathlib import Path

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import ProblemsFound
from pi_workflows.cli.connection import state_directory
from pi_workflows.cli.failure import Failure, problem_documents
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.outcome import FAILED
from pi_workflows.cli.resolving import resolve
from pi_workflows.cli.table import Cell, write_table
from pi_workflows.cli.workflow_target import absolute_target, project_path
from pi_workflows.definition.outline import outline
from pi_workflows.definition.snapshot import Snapshot
from pi_workflows.protocol.workflows import WorkflowItem, WorkflowItems, WorkflowResolved


def check_workflow(invocation: Invocation, target: str, project: Path) -> int:
    """Check a workflow's file.

    Args:
        invocation: The invocation.
        target: A path or a name.
        project: The project's directory.

    Returns:
        The exit code: 1 when the file has mistakes.

    Raises:
        WrongUsage: The project's directory does not exist.
        Refused: `resolverFailed`.
        Unavailable: `resolverNotStarted`.
    """
    output = invocation.output
    request = _request("check", project_path(project), target=absolute_target(target))
    try:
        resolved = WorkflowResolved.parse(resolve(request))
    except ProblemsFound as found:
        if output.is_json:
            document: dict[str, Json] = {
                "schema": "pi-workflows.cli-check.v1",
                "valid": False,
                "problems": problem_documents(found.problems),
            }
            output.document(document)
        else:
            output.fail(Failure.of(found))
        return FAILED
    if output.is_json:
        output.document(
            {
                "schema": "pi-workflows.cli-check.v1",
                "valid": True,
                "problems": [],
                "definitionDigest": resolved.definition_digest,
                "definition": resolved.definition_snapshot,
            }
        )
        return 0
    output.lines(outline(Snapshot.parse(canonical.encode(resolved.definition_snapshot))))
    return 0


def list_workflows(invocation: Invocation, project: Path) -> int:
    """List the workflows that a project sees by name.

    Returns:
        The exit code.

    Raises:
        As `check_workflow`.
    """
    output = invocation.output
    answer = resolve(_request("list", project_path(project)))
    items = WorkflowItems.parse(answer).items
    if output.is_json:
        documents: list[Json] = [item.document() for item in items]
        output.document({"schema": "pi-workflows.cli-workflows.v1", "items": documents})
        return 0
    write_table(output, ("name", "from", "file", "about"), [_row(item) for item in items])
    if all(item.source == "builtin" for item in items):
        output.note(
            "None of your own. A workflow is a file NAME_workflow.py in .pi/workflows/ of the"
            f" project or in {state_directory().definitions}; run one from anywhere by its path."
        )
    return 0


def _row(item: WorkflowItem) -> list[Cell]:
    """Return a workflow as the list shows it."""
    if item.error is not None:
        return [(item.name, "red"), item.source, item.path, (item.error, "red")]
    if item.shadowed_by is not None:
        hidden = f"hidden by {item.shadowed_by}"
        return [(item.name, "dim"), (item.source, "dim"), (item.path, "dim"), (hidden, "dim")]
    return [(item.name, "bold"), item.source, item.path, item.summary]


def _request(operation: str, project: str, **target: Json) -> dict[str, Json]:
    """Return what a resolver child is asked."""
    return {
        "operation": operation,
        "projectPath": project,
        "definitionsPath": str(state_directory().definitions),
        **target,
    }
