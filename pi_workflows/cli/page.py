"""Markdown on a terminal, as a page: headings stand where they are read, at the left."""

from __future__ import annotations

from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.text import Text


class _LeftHeading(Heading):
    """A heading behind an empty line, not in the middle of the window."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render it."""
        self.text.justify = "left"
        yield Text("")
        yield self.text


class Page(Markdown):
    """Markdown with such headings."""

    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _LeftHeading,
    }
