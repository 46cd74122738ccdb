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
from pi_workflows.definition.snapshot import AssistantOutput
from pi_workflows.definition.source import SourceFile
from pi_workflows.protocol.runner import Mount
from pi_workflows.protocol.wire import (
    AbsolutePath,
    AnyJson,
    DefinitionDigest,
    Many,
    Text,
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
        node_path: The node that asked.
        kind: The kind of its request.
        contract: What the request showed.
        candidate: The answer to judge.
    """

    project_path: AbsolutePath
    source_files: Many[SourceFile]
    mounts: Many[Mount]
    definition_digest: DefinitionDigest
    node_path: Text
    kind: Literal["agent", "assistant", "checkpoint"]
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
    node = loaded.workflow.node_by_path.get(request.node_path)
    with AuthorCode(loaded.paths, code="answerInvalid"):
        value = _accepted(node, request)
    size = len(canonical.encode(value, field="answer"))
    if size > ANSWER_BYTES_MAX:
        raise found("valueTooLarge", "answer", f"{size:,} bytes; at most {ANSWER_BYTES_MAX:,}")
    return value


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
