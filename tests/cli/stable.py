"""Documents with what differs from run to run taken out, so that a snapshot can hold the rest."""

from __future__ import annotations

import re
from typing import Final

from pi_workflows.authoring.builtins import BUILTINS
from pi_workflows.base.canonical import Json
from tests.cli.installation import WORKFLOWS, Installation

_HEX: Final = re.compile(r"\b[0-9a-f]{40,64}\b")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}")
_DURATION: Final = re.compile(r"\b\d+\.\d s\b")
_EARLIEST_MS: Final = 1_600_000_000_000
_PROCESS: Final = frozenset({"pid", "elapsedMs", "durationMs", "p50Us", "p99Us"})


def stable(value: Json, installation: Installation) -> Json:
    """Return a document without moments, digests, processes and places of this run."""
    if isinstance(value, dict):
        return {
            name: "<varies>" if name in _PROCESS else stable(member, installation)
            for name, member in value.items()
        }
    if isinstance(value, list):
        return [stable(item, installation) for item in value]
    if isinstance(value, str):
        return stable_text(value, installation)
    if isinstance(value, int) and value > _EARLIEST_MS:
        return "<moment>"
    return value


def stable_text(text: str, installation: Installation) -> str:
    """Return text without moments, durations, digests and places of this run."""
    text = text.replace(str(installation.root), "<root>").replace(str(WORKFLOWS), "<workflows>")
    text = _HEX.sub("<digest>", text)
    text = text.replace(str(BUILTINS), "<builtins>")
    return _DURATION.sub("<duration>", _MOMENT.sub("<moment>", text))
