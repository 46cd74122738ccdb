"""What a run gave, for people: Markdown where the workflow wrote some, else names and values."""

from __future__ import annotations

from typing import Final

from pi_workflows.cli.content import whole
from pi_workflows.cli.escaping import escaped_lines
from pi_workflows.cli.outline import value_lines
from pi_workflows.cli.output import Output
from pi_workflows.cli.reader import Reader
from pi_workflows.cli.run_view import RunView

_LINES_MAX: Final = 60
_MARKDOWN: Final = "markdown"
# Text is read best at the width of a page, however wide the window.
_PAGE_COLUMNS: Final = 100


def write_result(output: Output, server: Reader, view: RunView) -> None:
    """Write the output of a completed run to standard output.

    Args:
        output: Where to.
        server: Fetches an output that is too large for the view.
        view: The run. An object with a text member `markdown` is shown by that.

    Raises:
        Unavailable: As `Client.request`, when the output has to be fetched.
    """
    if not view.state.has_output:
        return
    value = whole(server, view.run_id, view.state.final_output)
    if isinstance(value, dict) and isinstance(text := value.get(_MARKDOWN), str):
        _write_markdown(output, text)
        return
    output.lines(value_lines(value, lines_max=_LINES_MAX if output.is_terminal else None))


def _write_markdown(output: Output, text: str) -> None:
    """Write Markdown, formatted where a person sees it."""
    lines = escaped_lines(text.strip())
    if not output.is_terminal:
        output.lines(lines)
        return
    # Formatting is loaded only for those who see it.
    from pi_workflows.cli.page import print_page  # noqa: PLC0415

    print_page(output.console(), "\n".join(lines), columns_max=_PAGE_COLUMNS)
