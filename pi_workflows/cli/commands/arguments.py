"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from pi_workflows.base.limits import PATIENCE_SECONDS_MAX, REVISION_MAX


def path_of(metavar: str) -> Callable[[str], Path]:
    """Return what reads a path: nothing is looked at, so that whoever opens it says what is wrong.

    Args:
        metavar: What help calls it.
    """

    def read(text: str) -> Path:
        """Take a path as it is typed; an empty one, as of a variable that is unset, is none."""
        if not text:
            raise ValueError(f"{metavar} is empty.")
        return Path(text)

    return read


RunArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="RUN", help="A run ID, or the beginning of one.")
]
ProjectOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--project",
        metavar="DIR",
        parser=path_of("DIR"),
        help="The project's directory; the current one by default.",
    ),
]
FileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--file",
        metavar="FILE",
        parser=path_of("FILE"),
        help="Look into a database that no server has open, and start none.",
    ),
]
DeadlineOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--deadline",
        metavar="SECONDS",
        min=0,
        max=PATIENCE_SECONDS_MAX,
        help="Follow no longer than this; the run goes on, and the exit code is 8.",
    ),
]
FromOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--from",
        metavar="SEQ",
        min=0,
        max=REVISION_MAX,
        help="Leave out the events up to this number.",
    ),
]
