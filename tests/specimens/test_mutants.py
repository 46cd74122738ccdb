"""Every single mutation of the schema is refused, and the refused file keeps its bytes (H6)."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from migrations_forbidden import schema_text
from migrations_forbidden.specimens.ddl import parse
from migrations_forbidden.specimens.mutants import Mutant, controls, images, mutants
from pi_workflows.base.errors import Incompatible
from pi_workflows.store.database import Store
from pi_workflows.store.inactive import open_inactive
from tests.specimens.refusal import REFUSAL

SLICES = 8


def open_live(file: Path) -> None:
    """Start as a server does."""
    Store.open(file.parent, now_ms=1, app_version="test").crash()


def look_into(file: Path) -> None:
    """Read as a command does."""
    with open_inactive(file, live_directory=None):
        pass


def accepted(file: Path, image: bytes) -> list[str]:
    """Return how a file is opened although it must be refused, or what that did to it."""
    file.write_bytes(image)
    found: list[str] = []
    for way in (open_live, look_into):
        try:
            way(file)
        except Incompatible as error:
            if error.message != REFUSAL:
                found.append(f"{way.__name__}: {error.message}")
        else:
            found.append(f"{way.__name__}: accepted")
        if file.read_bytes() != image or [each.name for each in file.parent.iterdir()] != [
            file.name
        ]:
            found.append(f"{way.__name__}: left a trace")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SLICES))
def test_every_mutation_is_refused(tmp_path: Path, first: int) -> None:
    """A starting server and a look into the file refuse each by the fixed text, without a trace.

    In either journal mode: one mutant says that it may have a log, the next that it has none.
    """
    tmp_path.chmod(0o700)
    file = tmp_path / "state.sqlite"
    found: list[str] = []
    with images() as maker:
        for count, mutant in enumerate(islice(mutants(), first, None, SLICES)):
            image = maker.make(mutant, has_wal=bool(count % 2))
            found += [f"{mutant.family}: {mutant.what}: {what}" for what in accepted(file, image)]
    assert found == []


def test_a_table_that_is_made_again_is_accepted(tmp_path: Path) -> None:
    """What makes a mutant is no difference by itself: each table made again as it was is ours."""
    with images() as maker:
        for count, control in enumerate(controls()):
            directory = tmp_path / str(count)
            directory.mkdir(mode=0o700)
            file = directory / "state.sqlite"
            file.write_bytes(maker.make(control, has_wal=bool(count % 2)))
            look_into(file)
            if count % 6 == 0:
                open_live(file)


def test_one_mutant_leaves_nothing_for_the_next() -> None:
    """The image of a mutant does not depend on those made before."""
    one, other = islice(mutants(), 100, 102)
    with images() as maker:
        first = maker.make(one, has_wal=False)
        maker.make(other, has_wal=False)
        maker.make(Mutant("none", "none", ()), has_wal=True)
        assert maker.make(one, has_wal=False)[100:] == first[100:]


def test_no_part_of_the_schema_is_left_out() -> None:
    """There are as many mutants of each kind as the text of the schema has places for."""
    text = re.sub(r"^--.*\n", "", schema_text(), flags=re.MULTILINE)
    tables, indexes = parse(schema_text())
    every = tuple(mutants())
    count = Counter(each.family for each in every)
    what = Counter((each.family, each.what.rpartition(" ")[2]) for each in every)
    column_count = len(re.findall(r"^    \w+ (?:TEXT|INTEGER|BLOB)\b", text, re.MULTILINE))
    assert len(tables) == len(re.findall(r"\bSTRICT\b", text)) == 47
    assert len(indexes) == text.count("INDEX ") > 90
    for family in ("column dropped", "column renamed", "column retyped", "column nullable"):
        assert count[family] == column_count > 400
    assert count["check"] == text.count("CHECK (") > 200
    assert count["index dropped"] == len(indexes)
    assert what["index changed", "uniqueness"] == len(indexes)
    assert what["index changed", "rows"] == len(indexes)
    assert what["index changed", "row"] == text.count("\nWHERE") + text.count(") WHERE")
    assert what["foreign key", "key"] == text.count("REFERENCES") > 100
    assert what["foreign key", "otherwise"] == 2 * text.count("REFERENCES")
    assert count["default"] == 2 * text.count("DEFAULT ")
    assert count["storage"] == 2 * len(tables)
    assert count["column added"] == count["table dropped"] == len(tables)
    assert count["object added"] > 3 * len(tables)
    assert count["identity"] == 10
    assert len(every) > 3_000
    assert len({each.statements for each in every}) == len(every)
