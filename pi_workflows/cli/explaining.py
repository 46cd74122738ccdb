"""`explain`: why a run is where it is; of a file also what happened to it before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from pi_workflows.base.canonical import Json
from pi_workflows.cli.connection import ask, state_directory
from pi_workflows.cli.escaping import escaped
from pi_workflows.cli.invocation import Invocation
from pi_workflows.cli.output import Output
from pi_workflows.cli.paragraph import wrapped
from pi_workflows.cli.run_view import RunView
from pi_workflows.cli.source import source
from pi_workflows.cli.standing import Standing, standing
from pi_workflows.protocol.operations import Operation

if TYPE_CHECKING:
    from pi_workflows.audit.explaining import Story

_ENDED: Final = frozenset({"completed", "failed", "timed_out", "cancelled"})


def explain_run(invocation: Invocation, typed: str, file: Path | None) -> int:
    """Say why a run is where it is; of a file tell its story first.

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
    story: Story | None = None
    with source(invocation, file) as asked:
        run_id = asked.run_id_of(typed)
        view = RunView.parse(ask(asked.reader, Operation.VIEW_RUN_GET, {}, run_id=run_id).receipt)
        found = standing(asked.reader, view, asked.now_ms, is_live=file is None)
        if file is not None:
            # Telling a story needs the store and the views.
            from pi_workflows.audit.explaining import explain_file  # noqa: PLC0415

            story = explain_file(file, live_directory=state_directory().root, run_id=run_id)
    _write(invocation.output, view, found, story)
    return 0


def _write(output: Output, view: RunView, found: Standing, story: Story | None) -> None:
    """Write what was found."""
    if output.is_json:
        document: dict[str, Json] = {
            "schema": "pi-workflows.cli-explain.v1",
            "runId": view.run_id,
            "status": view.display.status,
            **found.document(),
        }
        if story is not None:
            document["story"] = story.document()
        output.document(document)
        return
    if story is None:
        _write_standing(output, view, found)
        return
    from pi_workflows.cli.story import story_lines  # noqa: PLC0415 - of a file only

    output.styled(story_lines(story, output.columns))
    if view.display.status not in _ENDED or found.code == "effectAmbiguous":
        output.styled([(), (("Where it stands", "bold"),)])
        _write_standing(output, view, found, indent="  ")


def _write_standing(output: Output, view: RunView, found: Standing, indent: str = "") -> None:
    """Write where a run stands, and what helps."""
    texts = wrapped(escaped(found.sentence), output.columns, indent=len(indent))
    output.styled([((f"{indent}{text}", ""),) for text in texts])
    if found.command is not None:
        # It is copied, so that no end of it may be cut off.
        output.line(f"{indent}  {found.command}")
        return
    what = "Nothing to do." if view.display.status in _ENDED else "Nothing to do: wait."
    output.styled([((f"{indent}  {what}", "dim"),)])
