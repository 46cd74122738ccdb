"""`show`: everything about one run that a person asks first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pi_workflows.base.canonical import Json
from pi_workflows.base.clock import SystemClock
from pi_workflows.cli.connection import ask, client
from pi_workflows.cli.content import whole
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.lookup import run_id_of
from pi_workflows.cli.measures import age, duration, moment, plural
from pi_workflows.cli.outline import value_lines
from pi_workflows.cli.output import Line
from pi_workflows.cli.picture import Scene, graph, status_span
from pi_workflows.cli.question import answer_example, question_lines, schema_lines
from pi_workflows.cli.result import write_result
from pi_workflows.cli.run_view import RunView
from pi_workflows.client.blocking import Client
from pi_workflows.protocol.operations import Operation

_LINES_MAX: Final = 20
_LABEL: Final = 10


def show_run(invocation: Invocation, typed: str) -> int:
    """Show a run.

    Args:
        invocation: The invocation.
        typed: The run.

    Returns:
        The exit code.

    Raises:
        NotFound: There is no such run.
        Refused: `runAmbiguous`.
        Unavailable: As `Client.request`.
    """
    output = invocation.output
    with client(invocation) as server:
        run_id = run_id_of(server, typed)
        document = ask(server, Operation.VIEW_RUN_GET, {}, run_id=run_id).receipt
        if output.is_json:
            output.document(document if isinstance(document, dict) else {})
            return 0
        view = RunView.parse(document)
        output.styled(
            [*_about(view), (), *_graph(view, output.columns), *_input(view), *_asked(server, view)]
        )
        if view.state.has_output:
            output.styled([(), (("Output", "bold"),)])
            write_result(output, server, view)
        output.styled(_error(server, view))
        output.styled([(), *_next(server, view)])
    return 0


def _about(view: RunView) -> Iterator[Line]:
    """Yield what the run is and where it stands."""
    now_ms = SystemClock().now_ms()
    state = view.state
    yield ((escaped(view.title), "bold"),)
    yield _fact("run", view.run_id)
    status, style = status_span(view.display.status, Scene(now_ms))
    reason = f"  {escaped(view.display.reason)}" if view.display.reason else ""
    yield (_label("status"), (status, style), (reason, ""))
    yield _fact("workflow", f"{state.workflow_name}, {state.workflow_source.ref}")
    if view.queue.parent_run_id is not None:
        yield _fact("restart", f"{view.queue.restart_number} of {view.queue.parent_run_id}")
    yield _fact("created", f"{moment(state.created_at)}, {age(now_ms - state.created_at)} ago")
    if state.finished_at is not None:
        took = duration(state.finished_at - state.created_at)
        yield _fact("ended", f"{moment(state.finished_at)}, after {took}")
    yield _fact("steps", f"{plural(view.step_total, 'step')}, {plural(state.trace_seq, 'event')}")


def _graph(view: RunView, columns: int | None) -> list[Line]:
    """Return the graph as it stands."""
    now_ms = view.state.finished_at or SystemClock().now_ms()
    return graph(view, Scene(now_ms, columns=columns))


def _input(view: RunView) -> Iterator[Line]:
    """Yield the run's input, unless it has none."""
    if view.state.input not in ({}, None):
        yield ()
        yield (("Input", "bold"),)
        yield from _indented(value_lines(view.state.input, lines_max=_LINES_MAX))


def _asked(server: Client, view: RunView) -> Iterator[Line]:
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


def _error(server: Client, view: RunView) -> list[Line]:
    """Return why the run failed, in full."""
    if view.state.error is None:
        return []
    error = whole(server, view.run_id, view.state.error)
    message: Json = error.get("message") if isinstance(error, dict) else error
    return [(), (("Error", "bold red"),), *_indented(value_lines(message))]


def _next(server: Client, view: RunView) -> Iterator[Line]:
    """Yield what may be done with the run."""
    request = view.state.interaction
    contract = None if request is None else whole(server, view.run_id, request.contract)
    words = {
        "answer": f"answer {view.run_id} {answer_example(contract)}",
        "pause": f"pause {view.run_id}",
        "resume": f"resume {view.run_id}",
        "cancel": f"cancel {view.run_id}",
        "review": f"effects --run {view.run_id}",
    }
    # What is asked for comes before what may be done as well.
    offered = [text for control, text in words.items() if control in view.display.controls]
    if view.state.finished_at is not None:
        offered.append(f"restart {view.run_id}")
    offered.append(f"events {view.run_id}")
    yield (("Next", "bold"),)
    for each in offered:
        yield (("  pi-workflows ", "dim"), (each, ""))


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
