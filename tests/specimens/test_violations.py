"""For every code of a verification there is an edit that it finds, and it says whose the row is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from migrations_forbidden.specimens.violation import specimens, violate
from pi_workflows.base.errors import Incompatible
from pi_workflows.kernel.verify import CODES
from pi_workflows.store.inactive import open_inactive
from tests.specimens.checked import check

# No database is opened without them.
OPENED = {"identity", "shape"}
SPECIMENS = specimens()


@pytest.fixture
def file(sound: Path, tmp_path: Path) -> Path:
    """Return a copy that a hand may change."""
    return Path(shutil.copy(sound, tmp_path / "state.sqlite"))


def test_every_code_has_a_specimen() -> None:
    """There is a way to violate every code, and none for anything else."""
    assert {specimen.code for specimen in SPECIMENS.values()} == set(CODES)
    assert set(CODES) <= set(SPECIMENS)


@pytest.mark.parametrize("name", [name for name in SPECIMENS if name not in OPENED])
def test_a_violation_is_found(file: Path, name: str) -> None:
    """The code is reported with the runs that it concerns, nothing else is, and nothing changes.

    Of the rules, that is: a row that a hand has put in is one that the log does not give.
    """
    specimen = SPECIMENS[name]
    victims = violate(file, name)
    before = file.read_bytes()
    quick = check(file, quick=True)
    found = {violation.code: violation.run_ids for violation in quick.violations}
    if found:
        assert set(found) == {specimen.code} | specimen.also
    else:
        full = check(file)
        found = {violation.code: violation.run_ids for violation in full.violations}
        assert specimen.code in found
    assert set(victims) <= set(found[specimen.code])
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", sorted(OPENED))
def test_a_foreign_file_is_refused(file: Path, name: str) -> None:
    """A file with another identity or shape is not even opened."""
    violate(file, name)
    before = file.read_bytes()
    with pytest.raises(Incompatible), open_inactive(file, live_directory=None):
        pass
    assert file.read_bytes() == before
