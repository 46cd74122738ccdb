"""Validating a candidate for a pending request by the code of the workflow that asked."""

from __future__ import annotations

from typing import Literal

from pi_workflows.authoring.failures import AuthorCode
from pi_workflows.authoring.loading import Loaded, found, load
from pi_workflows.authoring.nodes import CheckpointNode
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Refused
from pi_workflows.base.limits import ANSWER_BYTES_MAX
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
    kind: Literal["checkpoint"]
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
    sources = [mount.source for mount in request.mounts]
    if sources != [loaded.source]:
        raise found("definitionChanged", "mounts", "the run was started with other sources")
    node = loaded.workflow.nodes.get(request.node_path)
    if not isinstance(node, CheckpointNode):
        raise found("definitionChanged", request.node_path, "is no checkpoint of the workflow")
    with AuthorCode(loaded.paths, code="answerInvalid"):
        value = node.accept_answer(request.candidate)
    size = len(canonical.encode(value, field="answer"))
    if size > ANSWER_BYTES_MAX:
        raise found("valueTooLarge", "answer", f"{size:,} bytes; at most {ANSWER_BYTES_MAX:,}")
    return value


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
