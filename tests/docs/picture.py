"""Draws `docs/images/run.svg`: what the README's first command leaves on a terminal.

`scripts/picture` runs the command under tmux and hands over the captured screen, colours included.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.text import Text

_WIDTH: Final = 92

# As rich draws it, without fonts that a reader's browser would have to fetch.
_FORMAT: Final = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
  <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""


def picture(screen: str) -> str:
    """Return a captured terminal screen as an SVG."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(screen.rstrip()), soft_wrap=False)
    drawn = console.export_svg(title="pi-workflows", code_format=_FORMAT, unique_id="run")
    return "\n".join(line.rstrip() for line in drawn.rstrip().split("\n")) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(sys.stdin.read()), encoding="utf-8")
