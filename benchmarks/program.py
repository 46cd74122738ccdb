"""`scripts/bench`: measure, write a line of JSON for each figure and a table of all of them."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.anchor import anchor
from benchmarks.catalogue import METRICS
from benchmarks.figure import Figure, table
from benchmarks.setting import Setting

# Larger databases fill a disk, and a slip of the hand is likelier than a wish for one.
_SCALE_MAX: Final = 1_000


def main(arguments: Sequence[str]) -> int:
    """Run the program.

    Args:
        arguments: Of the command line.

    Returns:
        Its exit code.
    """
    options = _parser().parse_args(arguments, _Options())
    names = list(METRICS) if options.only is None else options.only
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.dir) as place:
        figures = _measure(Path(place), options.scale, names)
    sys.stderr.write(table(figures))
    return 0


class _Options(argparse.Namespace):
    """What the command line says."""

    dir: Path | None = None
    scale: float = 1.0
    only: list[str] | None = None


def _parser() -> argparse.ArgumentParser:
    """Return what reads the command line."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measure, print a line of JSON for each figure, and a table on standard error.",
    )
    parser.add_argument(
        "--dir", type=Path, help="where the databases lie: the disk that is measured"
    )
    parser.add_argument(
        "--scale", type=_factor, help="factor on the size of everything; 1 unless given"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="METRIC", choices=list(METRICS), help="leave out the others"
    )
    return parser


def _factor(text: str) -> float:
    """Read a scale."""
    value = float(text)
    if not 0 < value <= _SCALE_MAX:
        raise argparse.ArgumentTypeError(f"a scale is above 0 and at most {_SCALE_MAX}")
    return value


def _measure(place: Path, scale: float, names: Sequence[str]) -> list[Figure]:
    """Measure metrics one after the other; each is written as soon as it is known."""
    figures: list[Figure] = []
    with anchor(place, scale) as raw, ExitStack() as end:
        setting = Setting(place, scale, raw, end)
        for name in names:
            found = METRICS[name](setting)
            _write(found)
            figures += found
        beside = raw.figure(median(raw.rates))
    _write([beside])
    return [*figures, beside]


def _write(figures: Sequence[Figure]) -> None:
    """Write lines of JSON, at once."""
    sys.stdout.write("".join(f"{figure.line()}\n" for figure in figures))
    sys.stdout.flush()
