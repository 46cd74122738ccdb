"""`show`: everything about one run that a person asks first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.cli.connection import ask
from pi_workflows.cli.content import whole
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.measures import age, duration, moment, plural
from pi_workflows.cli.outline import value_lines
from pi_workflows.cli.output import Line, Output
from pi_workflows.cli.picture import Scene, graph, status_span
from pi_workflows.cli.question import answer_example, question_lines, schema_lines
from pi_workflows.cli.quoting import quoted, quoted_path
from pi_workflows.cli.reader import Reader
from pi_workflows.cli.result import write_result
from pi_workflows.cli.run_view import RunView
from pi_workflows.cli.source import Source, source
from pi_workflows.protocol.operations import Operation

_LINES_MAX: Final = 20
_LABEL: Final = 10
_HELD: Final = "A runner had it then."
_HELD_QUEUE: Final = frozenset({"starting", "running"})


def show_run(invocation: Invocation, typed: str, file: Path | None = None) -> int:
    """Show a run.

    Args:
        invocation: The invocation.
        typed: The run.
        file: A database that no server has open; None asks the server.

    Returns:
        The exit code.

    Raises:
        NotFound: There is no such run.
        Refused: `runAmbiguous`.
        WorkflowsError: As `source`.
    """
    output = invocation.output
    with source(invocation, file) as asked:
        run_id = asked.run_id_of(typed)
        document = ask(asked.reader, Operation.VIEW_RUN_GET, {}, run_id=run_id).receipt
        if output.is_json:
            output.document(document if isinstance(document, dict) else {})
            return 0
        view = RunView.parse(document)
        following = _next(asked, view) if file is None else next_in_file(view.run_id, file)
        show_view(output, asked, view, following)
    return 0


def show_view(output: Output, asked: Source, view: RunView, following: Iterable[str]) -> None:
    """Write a run view for people.

    Args:
        output: Where to.
        asked: Whose view it is; its content is fetched there.
        view: The view.
        following: What may be done next, each a command without the program's name.
    """
    if asked.file is not None:
        view = _as_then(view)
    graph_at_ms = view.state.finished_at or asked.now_ms
    scene = Scene(graph_at_ms, columns=output.columns)
    output.styled([*_about(view, asked), (), *graph(view, scene), *_input(view)])
    output.styled(_asked(asked.reader, view))
    if view.state.has_output:
        output.styled([(), (("Output", "bold"),)])
        write_result(output, asked.reader, view)
    output.styled(_error(asked.reader, view))
    output.styled([(), (("Next", "bold"),)])
    output.styled((("  pi-workflows ", "dim"), (each, "")) for each in following)


def next_in_file(run_id: str, file: Path) -> Iterator[str]:
    """Yield what may be asked of a file about a run, each a command without the program's name."""
    yield f"events {quoted(run_id)} --file {quoted_path(file)}"
    yield f"explain {quoted(run_id)} --file {quoted_path(file)}"


def _about(view: RunView, asked: Source) -> Iterator[Line]:
    """Yield what the run is and where it stands."""
    state = view.state
    yield ((escaped(view.title), "bold"),)
    yield _fact("run", view.run_id)
    if asked.file is not None:
        yield _fact("as of", f"{moment(asked.now_ms)}, {asked.place}")
    status, style = status_span(view.display.status, Scene(asked.now_ms))
    reason = view.display.reason
    yield (_label("status"), (status, style), (f"  {escaped(reason)}" if reason else "", ""))
    yield _fact("workflow", f"{state.workflow_name}, {state.workflow_source.ref}")
    if view.queue.parent_run_id is not None:
        yield _fact("restart", f"{view.queue.restart_number} of {view.queue.parent_run_id}")
    since = "" if asked.file is not None else f", {age(asked.now_ms - state.created_at)} ago"
    yield _fact("created", f"{moment(state.created_at)}{since}")
    if state.finished_at is not None:
        took = duration(state.finished_at - state.created_at)
        yield _fact("ended", f"{moment(state.finished_at)}, after {took}")
    yield _fact("steps", f"{plural(view.step_total, 'step')}, {plural(state.trace_seq, 'event')}")


def _as_then(view: RunView) -> RunView:
    """Return a view of a file as people were told it: a run that a runner had was running.

    Without a live process the view says that its runner was lost, which was not so then.
    """
    if not view.possibly_interrupted or view.queue.status not in _HELD_QUEUE:
        return view
    display = view.display.model_copy(update={"status": "running", "reason": _HELD})
    return view.model_copy(update={"display": display})


def _input(view: RunView) -> Iterator[Line]:
    """Yield the run's input, unless it has none."""
    if view.state.input not in ({}, None):
        yield ()
        yield (("Input", "bold"),)
        yield from _indented(value_lines(view.state.input, lines_max=_LINES_MAX))


def _asked(server: Reader, view: RunView) -> Iterator[Line]:
    """Yield the question that waits for an answer."""
    request = view.state.interaction
    if request is None:
        return
    contract = whole(server, view.run_id, request.contract)
    yield ()
    yield (("Question", "bold"), (f"  {request.request_id}", "dim"))
    yield from _indented(question_lines(contract))
    answer = list(schema_lines(contract))
    if answer:
        yield ()
        yield (("Answer", "bold"),)
        yield from _indented(answer)


def _error(server: Reader, view: RunView) -> list[Line]:
    """Return why the run failed, in full."""
    if view.state.error is None:
        return []
    error = whole(server, view.run_id, view.state.error)
    message: Json = error.get("message") if isinstance(error, dict) else error
    return [(), (("Error", "bold red"),), *_indented(value_lines(message))]


def _next(asked: Source, view: RunView) -> Iterator[str]:
    """Yield what may be done with the run."""
    request = view.state.interaction
    contract = None if request is None else whole(asked.reader, view.run_id, request.contract)
    words = {
        "answer": f"answer {view.run_id} {answer_example(contract)}",
        "human-answer": f"answer {view.run_id} {answer_example(contract)}",
        "pause": f"pause {view.run_id}",
        "resume": f"resume {view.run_id}",
        "cancel": f"cancel {view.run_id}",
        "review": f"effects --run {view.run_id}",
    }
    # What is asked for comes before what may be done as well.
    for control, text in words.items():
        if control in view.display.controls:
            yield text
    if view.state.finished_at is not None:
        yield f"restart {view.run_id}"
    yield f"events {view.run_id}"


def _fact(label: str, text: str) -> Line:
    """Return one fact with its label."""
    return (_label(label), (escaped(text), ""))


def _label(label: str) -> tuple[str, str]:
    """Return a label."""
    return f"  {label:<{_LABEL}}", "dim"


def _indented(lines: Sequence[str] | Iterator[str]) -> Iterator[Line]:
    """Yield lines that are safe already, indented."""
    for line in lines:
        yield ((f"  {line}", ""),)
