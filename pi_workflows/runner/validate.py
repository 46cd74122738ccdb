"""Validating a candidate for a pending request by the code of the workflow that asked."""

from __future__ import annotations

from typing import Literal

from pi_workflows.authoring.failures import AuthorCode
from pi_workflows.authoring.loading import Loaded, load
from pi_workflows.authoring.modules import found
from pi_workflows.authoring.nodes import AgentNode, AnyNode, CheckpointNode
from pi_workflows.authoring.submissions import accepted_output, accepted_text
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Refused
from pi_workflows.base.limits import ANSWER_BYTES_MAX
from pi_workflows.definition.settings import ActorClass
from pi_workflows.definition.snapshot import AssistantOutput
from pi_workflows.definition.source import SourceFile
from pi_workflows.protocol.runner import Mount
from pi_workflows.protocol.wire import (
    AbsolutePath,
    AnyJson,
    DefinitionDigest,
    Many,
    WireModel,
    error_line,
)
from pi_workflows.runner.exchange import Exchange, parsed
from pi_workflows.runner.sources import require_mounts


class Request(WireModel):
    """One request line (the runner protocol, "Program").

    Attributes:
        project_path: The run's project.
        source_files: The files that the run was started with, the workflow file first.
        mounts: The identities of the sources that they make up.
        definition_digest: The digest of the run's definition.
        node_path: The node that asked; of settings the mount, empty for the root.
        kind: The kind of its request, or `settings`.
        contract: What the request showed.
        candidate: The answer to judge.
    """

    project_path: AbsolutePath
    source_files: Many[SourceFile]
    mounts: Many[Mount]
    definition_digest: DefinitionDigest
    node_path: str
    kind: Literal["agent", "assistant", "checkpoint", "settings"]
    contract: AnyJson
    candidate: AnyJson


def answer(line: bytes) -> Json:
    """Judge one candidate.

    Args:
        line: The request, JSON.

    Returns:
        `{valid:true,value}` with the value as its model has it, or `{valid:false,error}` with one
        line for the person who wrote it.
    """
    try:
        request = Request.parse(parsed(line), field="request")
        if not request.source_files:
            raise found("requestInvalid", "sourceFiles", "names no file")
        loaded = load(request.source_files[0].path, request.source_files, request.definition_digest)
        try:
            return {"valid": True, "value": _judged(loaded, request)}
        finally:
            loaded.close()
    except Refused as error:
        return {"valid": False, "error": error_line(error.message)}


def _judged(loaded: Loaded, request: Request) -> Json:
    """Return the candidate as its node's model has it. Raises Refused when it is not acceptable."""
    require_mounts(loaded, request.mounts)
    if request.kind == "settings":
        return _changed(loaded, request)
    node = loaded.workflow.node_by_path.get(request.node_path)
    with AuthorCode(loaded.paths, code="answerInvalid"):
        value = _accepted(node, request)
    size = len(canonical.encode(value, field="answer"))
    if size > ANSWER_BYTES_MAX:
        raise found("valueTooLarge", "answer", f"{size:,} bytes; at most {ANSWER_BYTES_MAX:,}")
    return value


class _Change(WireModel):
    """What the contract of changed settings says."""

    actor: ActorClass
    before: AnyJson


def _changed(loaded: Loaded, request: Request) -> Json:
    """Return changed settings, which the workflow's code accepts as they are."""
    change = _Change.parse(request.contract, field="contract")
    mounts = {"", *(mount.path for mount in loaded.workflow.snapshot.mounts)}
    workflow = loaded.workflow.at(request.node_path) if request.node_path in mounts else None
    settings = None if workflow is None else workflow.settings
    if settings is None:
        raise found("definitionChanged", request.node_path, "the workflow has no settings")
    with AuthorCode(loaded.paths, code="settingsInvalid"):
        return settings.accept_change(change.before, request.candidate, change.actor)


def _accepted(node: AnyNode | None, request: Request) -> Json:
    """Return what the author's code makes of the candidate. Raises what that code raises."""
    match request.kind, node:
        case "checkpoint", CheckpointNode():
            return node.accept_answer(request.candidate)
        case "assistant", AgentNode(expected=AssistantOutput() as expected):
            return accepted_text(expected, request.candidate)
        case "agent", AgentNode(expected=expected) if not isinstance(expected, AssistantOutput):
            return accepted_output(node, request.candidate)
        case _:
            problem = f"is no {request.kind} of the workflow"
            raise found("definitionChanged", request.node_path, problem)


def main() -> int:
    """Serve requests until standard input ends; return the exit status."""
    exchange = Exchange.take_over()
    try:
        for line in exchange.lines():
            exchange.answer(answer(line))
    except Refused as error:
        exchange.answer({"valid": False, "error": error_line(error.message)})
        return 1
    return 0
