"""Write every specimen from a sound database: `python -m migrations_forbidden.specimens FILE NEW`.

FILE is a backup; NEW is a directory that does not exist yet. Every hostile case has a directory of
its own there; `violations` holds a file for each way to break a rule of `state verify` of which the
backup has the rows.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from migrations_forbidden.specimens.hostile import SPECIMENS
from migrations_forbidden.specimens.violation import NothingToChangeError, specimens, violate


def main() -> None:
    """Write them, one directory each, and say in a line what must come of each."""
    parser = argparse.ArgumentParser(
        description="Write a database for every hostile case and every violation."
    )
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
    write_violations(arguments.file, root / "violations")


def write_violations(file: Path, directory: Path) -> None:
    """Write a database for each way to violate a code, and say in a line which code that is.

    Args:
        file: The sound database that they are made from.
        directory: Made for them.
    """
    directory.mkdir(mode=0o700)
    for name, specimen in specimens().items():
        path = Path(shutil.copyfile(file, directory / f"{name}.sqlite"))
        try:
            violate(path, name)
        except NothingToChangeError:
            path.unlink()
            sys.stdout.write(f"{path}  not made, the backup has no such row\n")
        else:
            sys.stdout.write(f"{path}  violates: {specimen.code}\n")


if __name__ == "__main__":
    main()
