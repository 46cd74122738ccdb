"""Markdown on a terminal, as a page: headings stand where they are read, at the left."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.text import Text
from rich.theme import Theme

# The library's own style is a black box, which a light window and a table have no place for.
_STYLES: Final = Theme({"markdown.code": "cyan"})


class _LeftHeading(Heading):
    """A heading behind an empty line, not in the middle of the window."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render it."""
        self.text.justify = "left"
        yield Text("")
        yield self.text


class _Page(Markdown):
    """Markdown with such headings."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
    }


def print_page(console: Console, text: str, *, columns_max: int) -> None:
    """Print Markdown.

    Args:
        console: Where to.
        text: The Markdown, of safe lines.
        columns_max: How wide it gets in a wider window.
    """
    with console.use_theme(_STYLES):
        console.print(_Page(text, hyperlinks=False), width=min(console.width, columns_max))
