"""Resolving a name or a file to a workflow, and an input to its model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, cast

from pydantic import BaseModel

from pi_workflows.authoring.discovery import Listed, directories, find, included, listed
from pi_workflows.authoring.failures import AuthorCode
from pi_workflows.authoring.loading import Find, Loaded, load
from pi_workflows.authoring.modules import found
from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from pi_workflows.base.errors import Problem, ProblemsFound, Refused
from pi_workflows.base.limits import INPUT_BYTES_MAX, TITLE_CHARS_MAX
from pi_workflows.protocol.wire import AbsolutePath, AnyJson, Maybe, Text, WireModel
from pi_workflows.protocol.workflows import WorkflowItem, WorkflowItems, WorkflowResolved
from pi_workflows.runner.exchange import Exchange, parsed
from pi_workflows.runner.sources import mounts_of


class Request(WireModel):
    """One request line.

    Attributes:
        operation: `list` the workflows, `check` one, or `resolve` one with an input.
        project_path: The project's directory.
        definitions_path: The user's own directory of workflows.
        target: A name or a path; not for `list`.
        input: The input of `resolve`; `{}` when it is left out.
    """

    operation: Literal["list", "resolve", "check"]
    project_path: AbsolutePath
    definitions_path: Maybe[AbsolutePath] = None
    target: Maybe[Text] = None
    input: AnyJson = None


class Resolver:
    """Answers requests; keeps the last workflow loaded while its files are unchanged."""

    def __init__(self) -> None:
        self._loaded: Loaded | None = None

    def answer(self, line: bytes) -> Json:
        """Answer one request line.

        Args:
            line: The request, JSON.

        Returns:
            `{items}` for `list`; for `resolve` and `check` what `run.start` carries; or
            `{problems:[{code,where,message}]}` with everything that is wrong.
        """
        try:
            request = Request.parse(parsed(line), field="request")
            if request.operation == "list":
                return self._list(request)
            return self._resolve(request)
        except ProblemsFound as error:
            return problems_document(error.problems)
        except Refused as error:
            problem = Problem(error.reason_code, error.field or "", error.message)
            return problems_document((problem,))

    def close(self) -> None:
        """Forget the loaded workflow."""
        if self._loaded is not None:
            self._loaded.close()
            self._loaded = None

    def _list(self, request: Request) -> Json:
        searched = directories(Path(request.project_path), _path(request.definitions_path))
        return WorkflowItems(items=tuple(map(_item, listed(searched)))).document()

    def _resolve(self, request: Request) -> Json:
        if request.target is None:
            raise found("requestInvalid", "target", "name a workflow or its file")
        project = Path(request.project_path)
        definitions = _path(request.definitions_path)

        def referred(reference: str, base: Path) -> Path:
            return included(reference, base, project, definitions)

        loaded = self._load(find(request.target, project, definitions), referred)
        workflow = loaded.workflow
        resolved = WorkflowResolved(
            workflow_name=workflow.name,
            workflow_source_ref=loaded.source.ref,
            workflow_source=loaded.source,
            source_files=loaded.source_files,
            mounts=mounts_of(loaded)[1:] or None,
            definition_digest=workflow.digest,
            definition_snapshot=cast("dict[str, Json]", workflow.snapshot.document()),
        )
        if request.operation == "check":
            return resolved.document()
        candidate = request.input if "input" in request.model_fields_set else {}
        value, document = _input(loaded, candidate)
        title = _title(loaded, value)
        return resolved.model_copy(update={"input": document, "title": title}).document()

    def _load(self, path: Path, referred: Find) -> Loaded:
        """Return the workflow, loaded now or before from the same bytes."""
        kept = self._loaded
        if kept is not None:
            if kept.source_files[0].path == str(path.resolve()) and kept.is_unchanged():
                return kept
            self.close()
        self._loaded = load(path, find=referred)
        return self._loaded


def problems_document(problems: tuple[Problem, ...]) -> Json:
    """Return problems as the answer that reports them."""
    return {
        "problems": [
            {"code": problem.code, "where": problem.where, "message": problem.message}
            for problem in problems
        ]
    }


def main() -> int:
    """Serve requests until standard input ends; return the exit status."""
    exchange = Exchange.take_over()
    resolver = Resolver()
    try:
        for line in exchange.lines():
            _answer(exchange, resolver.answer(line))
    except Refused as error:
        problem = Problem(error.reason_code, error.field or "", error.message)
        _answer(exchange, problems_document((problem,)))
        return 1
    return 0


def _answer(exchange: Exchange, document: Json) -> None:
    """Write an answer, or why it cannot be written."""
    try:
        exchange.answer(document)
    except Refused as error:
        problem = Problem(error.reason_code, error.field or "", error.message)
        exchange.answer(problems_document((problem,)))


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


def _item(item: Listed) -> WorkflowItem:
    return WorkflowItem(
        name=item.name,
        source=item.source,
        path=item.path,
        summary=item.summary,
        shadowed_by=item.shadowed_by,
        error=item.error,
    )


def _input(loaded: Loaded, candidate: Json) -> tuple[BaseModel, Json]:
    """Return the input as its model has it, and as it is stored."""
    with AuthorCode(loaded.paths, code="inputInvalid"):
        value = loaded.workflow.accept_input(candidate)
        document = loaded.workflow.input_json(value)
    content = canonical.encode(document, field="input")
    if len(content) > INPUT_BYTES_MAX:
        message = (
            f"{len(content):,} bytes; at most {INPUT_BYTES_MAX:,}:"
            " put large data into a file and pass its path"
        )
        raise found("valueTooLarge", "input", message)
    return value, document


def _title(loaded: Loaded, value: BaseModel) -> str | None:
    """Return the run's title, or None when the workflow gives it none."""
    title = loaded.workflow.title
    if title is None or isinstance(title, str):
        return title
    compute = cast("Callable[[BaseModel], object]", title)
    with AuthorCode(loaded.paths, code="titleInvalid"):
        text = compute(value)
        if not isinstance(text, str) or not text.strip():
            raise found("titleInvalid", "title", f"its function returned {text!r:.60}: return text")
    if len(text) > TITLE_CHARS_MAX:
        message = f"{len(text):,} characters; at most {TITLE_CHARS_MAX}"
        raise found("titleInvalid", "title", message)
    return " ".join(text.split())
