"""Write every specimen from a sound database: `python -m migrations_forbidden.specimens FILE NEW`.

FILE is a backup; NEW is a directory that does not exist yet.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from migrations_forbidden.specimens.hostile import SPECIMENS


def main() -> None:
    """Write them, one directory each, and say in a line what must come of each."""
    parser = argparse.ArgumentParser(description="Write a database for every hostile case.")
    parser.add_argument("file", type=Path, help="a sound database: a backup")
    parser.add_argument("new", type=Path, help="the directory to make")
    arguments = parser.parse_args()
    root: Path = arguments.new
    root.mkdir(mode=0o700)
    for specimen in SPECIMENS:
        directory = root / f"{specimen.number:02}-{specimen.name}"
        directory.mkdir(mode=0o700)
        try:
            path = specimen.make(arguments.file, directory)
        except PermissionError as error:
            sys.stdout.write(f"{directory.name}: not made, {error.strerror}\n")
            continue
        expected = {
            "server": specimen.live, "file": specimen.offline, "backup": specimen.backup,
        }  # fmt: skip
        told = ", ".join(f"{name}: {result}" for name, result in expected.items() if result)
        sys.stdout.write(f"{path}  {told}\n")


if __name__ == "__main__":
    main()
