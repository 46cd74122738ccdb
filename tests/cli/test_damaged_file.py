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
# No check of the schema is in the way of a hand that edits.
TIMES = (
    "UPDATE events SET recorded_at = :at WHERE event_seq % 3 = 0",
    "UPDATE events SET recorded_at = 1 - recorded_at WHERE event_seq % 3 = 1",
    "UPDATE runs SET created_at = :at, finished_at = -1 - :at",
    "UPDATE node_attempts SET started_at = :at, finished_at = created_at",
    "UPDATE interactive_requests SET created_at = :at",
    "UPDATE attempt_active_intervals SET elapsed_ms = abs(:at >> 1)",
    "UPDATE run_queue SET available_at = :at",
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
    assert done.document["hint"] == "Type more of the ID."
    assert fresh.cli("audit", "log", file.name, "--run", "say-1").code == 0
    assert fresh.cli("audit", "log", file.name, "--run", "say-1\U0010ffff").code == 1


@pytest.mark.parametrize("at_ms", [2**63 - 1, -(2**63), -1, 2**53])
def test_times_that_no_calendar_has(at_ms: int, file: Path, fresh: Installation) -> None:
    """Whatever number stands for a time, no command breaks, and the log is told to its end."""
    for statement in TIMES:
        spoil(
            file, "PRAGMA ignore_check_constraints = ON;" + statement.replace(":at", f"({at_ms})")
        )
    for words in (
        ("audit", "log", file.name),
        ("audit", "log", file.name, "--json"),
        ("show", "ask", "--file", file.name),
        ("show", "ask", "--file", file.name, "--page", "steps"),
        ("events", "ask", "--file", file.name),
        ("explain", "ask", "--file", file.name),
        ("explain", "stuck", "--file", file.name),
        ("explain", "large", "--file", file.name),
        ("audit", "explain", file.name, "--run", "ask", "--json"),
        ("audit", "diff-runs", file.name, "ask", "say"),
        ("audit", "diff", file.name, "--from", "0", "--to", "9"),
        ("audit", "at", file.name, "--event", "9"),
        ("search", "ship", "--file", file.name),
    ):
        done = fresh.cli(*words)
        assert done.code in (0, 1, 4), (words, done.err)
        assert "internalError" not in done.out, words
    logged = fresh.cli("audit", "log", file.name).out.splitlines()
    beyond = sum("  beyond the calendar      " in line for line in logged)
    assert beyond == (0 if at_ms == -1 else len(logged) // 3)


def test_what_a_hostile_name_is_in_a_hint(file: Path, fresh: Installation) -> None:
    """The file's name and a run's ID that a hand wrote stand in commands as a shell has them."""
    spoil(file, "UPDATE runs SET run_id = '$(id);x' WHERE run_id = 'say-1'")
    odd = file.rename(file.with_name("a\x1b[2J'b c"))
    name = r"$'a\x1b[2J\'b c'"
    listed = fresh.cli("audit", "log", odd.name, "--limit", "1")
    assert f"More: pi-workflows audit log {name} --from 2 --limit 1\n" in listed.err
    missing = fresh.cli("show", "gone", "--file", odd.name)
    assert f"List its runs: pi-workflows audit log {name} --type run.queued\n" in missing.err
    broken = fresh.cli("show", "$(id)", "--file", odd.name)
    assert (broken.code, f"pi-workflows state verify {name}\n" in broken.err) == (4, True)
    made = fresh.cli("audit", "capsule", odd.name, "--run", "$(id)", "--to", "-x")
    assert "pi-workflows audit explain ./-x --run '$(id);x'\n" in made.err
