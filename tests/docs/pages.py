"""The pages that people read, taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

_FENCE: Final = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK: Final = re.compile(r"\]\((?P<target>[^)]+)\)")


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: The page that it stands on.
        info: What stands behind the fence, such as `python workflow=triage`.
        text: Its lines.
    """

    page: Path
    info: str
    text: str


def pages() -> list[Path]:
    """Return every page, the README first."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(kind: str) -> Iterator[Block]:
    """Yield the fenced blocks of one kind."""
    for page in pages():
        for found in _FENCE.finditer(page.read_text(encoding="utf-8")):
            if found["info"].split(" ")[0] == kind:
                yield Block(page, found["info"], found["text"])


def links() -> Iterator[tuple[Path, str]]:
    """Yield each link with the page that it stands on."""
    for page in pages():
        for found in _LINK.finditer(_FENCE.sub("", page.read_text(encoding="utf-8"))):
            yield page, found["target"]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
