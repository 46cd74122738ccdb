"""A file with a damaged run: the run is there, and what cannot be told of it is damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.archive import spoil
from tests.cli.installation import Installation

pytestmark = pytest.mark.slow

# What takes a run's own rows away, of one run or of all.
LOST = (
    "DELETE FROM leases WHERE resource_id = (SELECT resource_id FROM runs WHERE run_id = 'say-1')",
    "DELETE FROM run_queue",
    "DELETE FROM run_bindings",
    "DELETE FROM viewer_runs",
    "DELETE FROM workflow_definitions",
    "DELETE FROM run_sources WHERE mount_path = '' AND run_id = 'say-1'",
)
HINT = "See what is broken: pi-workflows state verify copy.sqlite"


@pytest.mark.parametrize("statement", LOST)
def test_a_run_that_lost_rows_is_there(statement: str, file: Path, fresh: Installation) -> None:
    """What needs the lost rows calls the file damaged; log and capsule tell what is left."""
    spoil(file, statement)
    for words in (
        ("show", "say", "--file", file.name),
        ("events", "say-1", "--file", file.name),
        ("search", "ship", "--run", "say", "--file", file.name),
        ("search", "ship", "--file", file.name),
        ("explain", "say", "--file", file.name),
        ("audit", "explain", file.name, "--run", "say"),
        ("audit", "diff-runs", file.name, "say", "ask"),
    ):
        done = fresh.cli(*words, "--json")
        told = done.documents[-1]
        assert (done.code, told.get("code"), told.get("hint")) == (4, "contradiction", HINT), words
    logged = fresh.cli("audit", "log", file.name, "--run", "say", "--json")
    assert logged.code == 0
    assert logged.document["events"]
    made = fresh.cli("audit", "capsule", file.name, "--run", "say", "--to", "new", "--json")
    assert (made.code, made.document["runIds"], made.document["valid"]) == (1, ["say-1"], False)


def test_the_run_that_a_prefix_names(file: Path, fresh: Installation) -> None:
    """A prefix of several runs of a file is ambiguous, an ID is not; the runs' own rows tell it."""
    spoil(file, "DELETE FROM leases")
    spoil(file, "UPDATE runs SET run_id = 'say-1' || run_id WHERE run_id != 'say-1'")
    done = fresh.cli("audit", "log", file.name, "--run", "say", "--json")
    assert (done.code, done.document["code"]) == (1, "runAmbiguous")
    assert str(done.document["message"]).startswith("7 runs begin with say: say-1")
    assert fresh.cli("audit", "log", file.name, "--run", "say-1").code == 0
    assert fresh.cli("audit", "log", file.name, "--run", "say-1\U0010ffff").code == 1
