"""A byte that was changed behind our back, wherever it is, is found or says nothing."""

from __future__ import annotations

import os
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pi_workflows.base.errors import WorkflowsError
from pi_workflows.kernel.comparison import SQL as COMPARED
from pi_workflows.kernel.verify import verify
from pi_workflows.store.driver import connect
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.scratch import create_scratch
from projections import route
from tests.audit.pages import BrokenFileError, Cell, FileMap, Place, Value
from tests.audit.population import SEED
from tests.audit.test_hand_edits import PROCESS_LOCAL

FLIPS: Final = int(os.environ.get("TAMPER_FLIPS", "500"))
TAMPER_SEED: Final = int(os.environ.get("TAMPER_SEED", str(SEED)))
# A backup has pages of 4 KiB, of which the schema alone takes 245; with the smallest that there are
# the same rows take the least room, so that the fewest flips hit free space.
PAGE_BYTES: Final = 512

# What must be said of a changed value of a journal, whatever else is found.
JOURNALS: Final = {
    "blobs": frozenset({"blobDigest", "blobMedia"}),
    "event_blobs": frozenset({"eventBlobs"}),
    "events": frozenset({"eventDigest"}),
    "host_commands": frozenset({"journalDigest"}),
    "session_entries": frozenset({"journalDigest"}),
    "session_events": frozenset({"journalDigest"}),
    "worker_messages": frozenset({"journalDigest"}),
}
# A receipt's run is no part of its digest, and stands in an index.
UNDIGESTED: Final = ("host_commands", 5)
REFUSALS: Final = frozenset({"Corrupt:stateCorrupt", "Incompatible:stateIncompatible"})
INTEGRITY: Final = frozenset({"integrity"})
# Facts about live processes and clocks, and the time at which a value was first stored
# (docs/audit.md, "What the digests cover").
PROCESSES: Final = frozenset({"run_workers", "schema_meta", "workflow_host_state"})
UNCOVERED: Final = {"blobs": ("created_at",), **PROCESS_LOCAL}
# SQLite's own table of counters: one that is too high gives no number away, and is legal after a
# prune.
COUNTERS: Final = "sqlite_sequence"


class Flip(NamedTuple):
    """What became of one changed byte.

    Attributes:
        offset: Where it is.
        place: What it is for.
        codes: What verification said; none when it said nothing.
        is_needed: Whether it had to say something.
    """

    offset: int
    place: Place
    codes: tuple[str, ...]
    is_needed: bool

    @property
    def expected(self) -> frozenset[str]:
        """The codes of which one must be said, by what the byte is for."""
        tree, part = self.place.tree, self.place.part
        if self.place.cell is None:
            return INTEGRITY | REFUSALS
        # Of an entry that cannot be read SQLite's own check tells, of its values ours does.
        structure = frozenset[str]() if part == "value" else INTEGRITY
        if tree == "sqlite_schema":
            return REFUSALS | structure
        if (tree, self.place.column) == UNDIGESTED:
            return INTEGRITY
        if tree in JOURNALS:
            return JOURNALS[tree] | structure
        if tree in COMPARED:
            # Rows are compared in the order of their keys, which the index has unchanged.
            return INTEGRITY | {"replay"}
        return INTEGRITY

    @property
    def is_missed(self) -> bool:
        """Whether what should have been said was not."""
        if self.place.cell is None:
            # Nothing needs to be said of a byte outside of entries, but what is said is its kind.
            return bool(self.codes) and not self.expected & set(self.codes)
        return self.is_needed and not self.expected & set(self.codes)

    @property
    def group(self) -> str:
        """The class under which it is counted."""
        tree, part = self.place.tree, self.place.part
        if self.place.cell is None:
            return part
        if tree == "sqlite_schema":
            return "schema"
        if tree == COUNTERS or tree in PROCESSES:
            return "process-local rows"
        if tree not in JOURNALS and tree not in COMPARED:
            return "index entries"
        if not self.is_needed:
            return "uncovered columns, or the same values"
        return tree if tree in JOURNALS else "projections"


@pytest.fixture(scope="module")
def small(every_kind: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the backup with pages that are as full as they can be."""
    file = tmp_path_factory.mktemp("small") / "small.sqlite"
    file.write_bytes(every_kind.read_bytes())
    with closing(connect(str(file))) as connection:
        connection.pragma("page_size", PAGE_BYTES)
        connection.execute("VACUUM")
    return file


def found(file: Path) -> tuple[str, ...]:
    """Return the codes of what verification finds, or of why it refuses the file."""
    try:
        with open_inactive(file, live_directory=None) as source:
            result = verify(
                source, quick=False, scratch=lambda: create_scratch(None), projectors=route
            )
    except WorkflowsError as error:
        return (f"{type(error).__name__}:{error.reason_code}",)
    return tuple(violation.code for violation in result.violations)


class Judge:
    """Says of which bytes a change has to be found."""

    def __init__(self, file: Path) -> None:
        self.data = file.read_bytes()
        self.map = FileMap(self.data)
        with closing(connect(str(file))) as connection:
            self._columns = {
                tree: [str(row[1]) for row in connection.execute(f"PRAGMA table_info({tree})")]
                for tree in self.map.trees
                if not tree.startswith("sqlite_")
            }

    def is_needed(self, place: Place, damaged: bytes) -> bool:
        """Whether a change must be found: it is in an entry, and changes what the entry says."""
        cell = place.cell
        if cell is None or place.tree == COUNTERS or place.tree in PROCESSES:
            return False
        if place.part == "cell header" or not cell.serials:
            return True
        try:
            return self._said(cell, damaged) != self._said(cell, self.data)
        except BrokenFileError:
            return True

    def _said(self, cell: Cell, data: bytes) -> list[Value]:
        """Return the values of an entry that are covered."""
        values = self.map.row(data, cell)
        if cell.tree == "sqlite_schema" and str(values[1]).startswith("sqlite_autoindex_"):
            # An index without a statement belongs to the table of its name, whatever else is told.
            return values[1:2] + values[3:]
        names = self._columns.get(cell.tree)
        if not names or len(values) != len(names):
            return values
        uncovered = set(UNCOVERED.get(cell.tree, ()))
        row = dict(zip(names, values, strict=True))
        if cell.tree == "attempt_active_intervals" and row["ended_at"] is None:
            uncovered |= {"observed_at", "elapsed_ms"}
        if cell.tree == "events":
            # The number is the entry's own key; the record has nothing in its place that counts.
            uncovered.add("event_seq")
        return [value for name, value in row.items() if name not in uncovered]


def test_the_map_is_sqlites_own(small: Path) -> None:
    """Every row that SQLite reads is where the map says, with the same values."""
    judge = Judge(small)
    cells = {place.cell for place in judge.map.places if place.cell is not None}
    with closing(connect(str(small))) as connection:
        for table in sorted({*JOURNALS, *COMPARED} - {"events"}):
            rows = list(connection.execute(f"SELECT * FROM {table}"))  # noqa: S608 - a test's own
            mapped = [
                tuple(judge.map.row(judge.data, cell))
                for cell in cells
                if cell.tree == table and cell.serials
            ]
            assert sorted(map(repr, mapped)) == sorted(map(repr, rows)), table


@pytest.mark.slow
def test_a_flipped_byte_is_found(
    small: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Every change of what the log, its values, receipts or rows say is reported or refused.

    By the check that looks after what was changed, and not by chance.
    """
    judge = Judge(small)
    assert found(small) == ()
    chance = random.Random(TAMPER_SEED)  # noqa: S311 - which bytes, no secret
    flips: list[Flip] = []
    file = tmp_path / "damaged.sqlite"
    file.write_bytes(judge.data)
    for _ in range(FLIPS):
        offset = chance.randrange(len(judge.data))
        damaged = bytearray(judge.data)
        damaged[offset] ^= chance.randrange(1, 256)
        _put(file, offset, damaged)
        place = judge.map.places[offset]
        flips.append(Flip(offset, place, found(file), judge.is_needed(place, bytes(damaged))))
        _put(file, offset, judge.data)
    assert file.read_bytes() == judge.data
    record_property(f"tamper test, {FLIPS} flips, seed {TAMPER_SEED}", _told(flips))
    assert [flip for flip in flips if flip.is_missed] == []


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ("UPDATE blobs SET byte_length = byte_length + 1 WHERE rowid = 5", "blobDigest"),
        (
            (
                "UPDATE blobs SET media_type = 'text/plaim' WHERE blob_hash ="
                " (SELECT error_hash FROM runs WHERE error_hash IS NOT NULL)"
            ),
            "blobMedia",
        ),
        (
            "UPDATE run_sources SET source_ref = CAST(x'ff' AS TEXT) WHERE mount_path <> ''",
            "replay",
        ),
    ],
)
def test_what_no_check_of_sqlite_sees_is_found(
    small: Path, tmp_path: Path, change: str, code: str
) -> None:
    """A CHECK is not read in a file that may only be read, and a text may be any bytes."""
    file = tmp_path / "edited.sqlite"
    file.write_bytes(small.read_bytes())
    with closing(connect(str(file))) as connection:
        connection.pragma("ignore_check_constraints", 1)
        connection.execute(change)
        assert connection.changes() == 1
    assert code in found(file)


@pytest.mark.parametrize(("tree", "column"), [("blobs", 3), ("events", 8)])
def test_a_value_of_another_type_ends_no_check(
    small: Path, tmp_path: Path, tree: str, column: int
) -> None:
    """Bytes that became text are damage that is reported, not a reason to stop."""
    data = bytearray(small.read_bytes())
    wanted = (tree, column, "record header")
    offsets = [
        offset
        for offset, place in enumerate(FileMap(bytes(data)).places)
        if (place.tree, place.column, place.part) == wanted
    ]
    data[offsets[-1]] ^= 1
    file = tmp_path / "damaged.sqlite"
    file.write_bytes(data)
    assert "integrity" in found(file)


def test_a_schema_that_is_no_text_is_refused(small: Path, tmp_path: Path) -> None:
    """SQLite takes any byte inside of quotes."""
    data = bytearray(small.read_bytes())
    data[data.index(b"timedOut")] ^= 0x80
    file = tmp_path / "damaged.sqlite"
    file.write_bytes(data)
    assert found(file) == ("Incompatible:stateIncompatible",)


def _put(file: Path, offset: int, data: bytes | bytearray) -> None:
    """Write one byte of data where it belongs."""
    with file.open("r+b") as opened:
        opened.seek(offset)
        opened.write(data[offset : offset + 1])


def _told(flips: list[Flip]) -> str:
    """Return the share that was found, by class."""
    classes: dict[str, list[bool]] = defaultdict(list)
    for flip in flips:
        classes[flip.group].append(bool(flip.codes))
    codes = Counter(flip.codes[0] for flip in flips if flip.codes)
    shares = ", ".join(
        f"{name} {sum(caught)}/{len(caught)}" for name, caught in sorted(classes.items())
    )
    first = ", ".join(f"{code} {count}" for code, count in codes.most_common())
    return f"{shares}; first codes: {first}"
