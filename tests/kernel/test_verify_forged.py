"""Whatever a hand has written into a file, the check goes to its end and repeats none of it."""

from __future__ import annotations

import re
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from pi_workflows.base.errors import Unavailable
from pi_workflows.kernel.findings import Findings
from pi_workflows.kernel.rules import check_event_types
from pi_workflows.kernel.verify import CODES, Verification, verify
from pi_workflows.store.driver import connect
from pi_workflows.store.inactive import open_inactive
from pi_workflows.store.log import high_water_mark
from pi_workflows.store.scratch import create_scratch
from projections import route
from tests.kernel.harness import Harness, begin, end, finish

# Words of our own beside those of the codes.
WORDS = {
    "What the check reads is damaged: it could not go on",
    "The server has no row of its own, or two",
}
REPLAYED = re.compile(r"The log gives no rows from event [\d,]+ on")
# What a payload's number becomes: more than 64 bits, and no number.
PAYLOAD = (
    "UPDATE blobs SET content = CAST(replace(CAST(content AS TEXT), '\"visit_number\":1',"
    " '\"visit_number\":{value}') AS BLOB) WHERE blob_hash IN (SELECT payload_hash FROM events)"
)
# Each edit with codes that must be found.
EDITS = {
    PAYLOAD.format(value=2**64): {"eventShape", "replay"},
    PAYLOAD.format(value=-(2**63) - 1): {"eventShape", "replay"},
    PAYLOAD.format(value='"secret"'): {"eventShape", "replay"},
    "UPDATE sqlite_sequence SET seq = 'secret'": {"sequence"},
    "UPDATE sqlite_sequence SET seq = 1e300": {"sequence"},
    "UPDATE sqlite_sequence SET seq = X'FF'": {"sequence"},
    "DELETE FROM sqlite_sequence": {"sequence"},
    "UPDATE events SET event_type = 'secret' || event_seq": {"eventShape", "replay"},
    "UPDATE events SET actor_type = 'secret'": {"eventDigest"},
    "UPDATE events SET recorded_at = -1 WHERE event_seq = 4": {"eventDigest", "replay"},
    "UPDATE events SET event_seq = 9223372036854775807 WHERE event_seq = 4": {"eventDigest"},
    "UPDATE host_commands SET created_at = 9223372036854775807": {"journalDigest"},
    "UPDATE runs SET status = 'secret'": {"replay"},
    "UPDATE runs SET title = CAST(X'FF' AS TEXT)": {"replay"},
    "UPDATE blobs SET media_type = 'secret'": {"blobMedia"},
}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of an installation that stopped in order after a run."""
    directory = tmp_path_factory.mktemp("stopped") / "state"
    bench = Harness(directory)
    permit = bench.launch()
    bench.do(begin("one"), permit=permit)
    bench.do(end("one", 1), begin("two"), permit=permit)
    bench.do(end("two", 2), permit=permit)
    bench.do(finish(2), permit=permit, identity=bench.client("key"))
    bench.store.close()
    return directory / "state.sqlite"


@pytest.fixture
def file(stopped: Path, tmp_path: Path) -> Path:
    """Return a copy that a hand may change."""
    return Path(shutil.copy(stopped, tmp_path / "state.sqlite"))


def forge(file: Path, statement: str) -> None:
    """Let a hand change the file, whatever its schema says."""
    with closing(connect(str(file))) as connection:
        connection.pragma("foreign_keys", 0)
        connection.pragma("ignore_check_constraints", 1)
        connection.execute(statement)
        assert connection.changes() > 0


def check(file: Path) -> Verification:
    """Verify a file in full."""
    with open_inactive(file, live_directory=None) as source:
        assert high_water_mark(source) >= 0
        return verify(source, quick=False, scratch=lambda: create_scratch(None), projectors=route)


@pytest.mark.parametrize("edit", EDITS)
def test_no_edit_ends_the_check(file: Path, edit: str) -> None:
    """Every check runs, and what is said of a violation are words of our own and numbers."""
    forge(file, edit)
    found = check(file)
    assert {violation.code for violation in found.violations} >= EDITS[edit]
    assert not found.is_partial
    assert {*found.checked, *(violation.code for violation in found.violations)} == set(CODES)
    for violation in found.violations:
        words = violation.explanation
        assert words in WORDS | set(CODES.values()) or REPLAYED.fullmatch(words), words


def test_a_check_that_cannot_go_on_is_not_said_to_be_done(file: Path) -> None:
    """A text that is none ends the check that reads it: its code is a violation, others go on."""
    forge(file, "UPDATE effects SET effect_type = CAST(X'FF' AS TEXT)")
    found = check(file)
    violations = {violation.code: violation.explanation for violation in found.violations}
    assert violations["effectKey"] == "What the check reads is damaged: it could not go on"
    assert "effectKey" not in found.checked
    assert {"replay", "eventDigest"} <= {*violations, *found.checked}


def test_a_disk_that_fails_is_no_violation(stopped: Path) -> None:
    """What the machine refuses says nothing about the file."""

    def progress(name: str, _count: int) -> None:
        if name == "steps":
            raise Unavailable("The disk could not be read.", code="storageFault")

    with open_inactive(stopped, live_directory=None) as source, pytest.raises(Unavailable):
        verify(
            source,
            quick=True,
            scratch=lambda: create_scratch(None),
            projectors=route,
            progress=progress,
        )


def test_bad_types_are_found_in_one_pass(file: Path) -> None:
    """However many types no event of ours has, the log is read once."""
    forge(file, "UPDATE events SET event_type = 'secret' || event_seq")
    found, told = Findings(), list[int]()
    with open_inactive(file, live_directory=None) as source:
        check_event_types(source, found, told.append)
        events = high_water_mark(source)
    (violation,) = found.violations()
    assert (violation.code, violation.count, violation.run_ids) == (
        "eventShape",
        events,
        ("run-1",),
    )
    assert told == [0]
