"""`audit log`, `audit at`, `audit diff`: what happened, how it stood then, what changed."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base import canonical
from pi_workflows.base.canonical import Json
from tests.cli.archive import RUNS, Archive, spoil
from tests.cli.installation import Installation
from tests.cli.stable import stable, stable_text
from tests.cli.terminal import terminal

pytestmark = pytest.mark.slow
# Shortened digests, drawn names, and milliseconds that a step took.
VARIES = re.compile(r"(?<=digest )[0-9a-f]{12}\b|\b[0-9a-f]{32}\b|\b[\d,]+(?= ms\b)")


def objects(value: Json) -> list[dict[str, Json]]:
    """Return an array of JSON objects."""
    assert isinstance(value, list)
    return [each for each in value if isinstance(each, dict)]


def numbers(file: Path, fresh: Installation, *options: str) -> list[int]:
    """Return the numbers of the events that are listed."""
    document = fresh.cli("audit", "log", file.name, *options, "--json").document
    return [each["event"] for each in objects(document["events"]) if isinstance(each["event"], int)]


def lines(text: str, fresh: Installation) -> list[str]:
    """Return lines without what differs from run to run."""
    return stable_text(text, fresh).splitlines()


def test_events_in_words(file: Path, fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """Each event of runs of several kinds is one line that says what happened, and by whom."""
    done = fresh.cli("audit", "log", file.name, "--limit", "70")
    assert done.code == 0
    assert lines(done.out, fresh) == snapshot(name="lines")
    assert done.err == "More: pi-workflows audit log copy.sqlite --from 71 --limit 70\n"


def test_events_for_programs(
    archive: Archive, file: Path, fresh: Installation, snapshot: SnapshotAssertion
) -> None:
    """The events of a run and of its effects in one document."""
    done = fresh.cli("audit", "log", file.name, "--run", "stuck", "--json")
    assert done.code == 0
    text = done.out.replace(str(archive.file.parent), "<made>")
    assert stable(canonical.decode(text.encode()), fresh) == snapshot


def test_events_by_number_type_and_run(file: Path, fresh: Installation) -> None:
    """Numbers are inclusive, a type may be a family, several add up, and all hold at once."""
    everything = numbers(file, fresh, "--limit", "10000")
    assert everything == list(range(1, len(everything) + 1))
    assert numbers(file, fresh, "--from", "10", "--to", "20") == list(range(10, 21))
    families = ("run", "attempt.", "lease", "effect", "request")
    by_family = [numbers(file, fresh, "--type", each, "--limit", "10000") for each in families]
    assert sorted(chain.from_iterable(by_family)) == everything
    types = ("run.queued", "run.waiting")
    both = numbers(file, fresh, "--type", types[0], "--type", types[1])
    alone = [numbers(file, fresh, "--type", each) for each in types]
    assert both == sorted(chain.from_iterable(alone))
    of_run = numbers(file, fresh, "--run", "stuck-1")
    effects = numbers(file, fresh, "--run", "stuck-1", "--type", "effect.")
    assert effects
    assert set(effects) < set(of_run)
    by_run = [numbers(file, fresh, "--run", each, "--limit", "10000") for each in RUNS]
    listed = list(chain.from_iterable(by_run))
    assert len(listed) == len(set(listed)) < len(everything)


def test_pages_of_events(file: Path, fresh: Installation) -> None:
    """A document is bounded, and `next` begins the following one: together they are the log."""
    everything = numbers(file, fresh, "--limit", "10000")
    assert len(everything) > 256
    found: list[int] = []
    start: Json = 0
    while start is not None:
        document = fresh.cli(
            "audit", "log", file.name, "--from", str(start), "--limit", "100", "--json"
        ).document
        page = [each["event"] for each in objects(document["events"])]
        assert len(page) <= 100
        found += [each for each in page if isinstance(each, int)]
        start = document.get("next")
    assert found == everything
    text = fresh.cli("audit", "log", file.name).out.splitlines()
    assert [int(line.split()[0]) for line in text] == everything


def test_types_that_are_not(file: Path, fresh: Installation) -> None:
    """An unknown type is wrong usage and names those there are; so is an end before the begin."""
    done = fresh.cli("audit", "log", file.name, "--type", "run.que", "--json")
    assert (done.code, done.document["code"]) == (2, "eventTypeUnknown")
    assert "run.queued" in str(done.document["message"])
    for words in ("log", "diff"):
        turned = fresh.cli("audit", words, file.name, "--from", "9", "--to", "8", "--json")
        assert (turned.code, turned.document["field"]) == (2, "--to")


def test_events_that_cannot_be_read(file: Path, fresh: Installation) -> None:
    """An event that is none of its type, or whose payload is gone, is listed as that: exit 1."""
    spoil(file, "UPDATE events SET event_type = 'run.lost' WHERE event_seq = 5")
    spoil(
        file,
        "DELETE FROM blobs WHERE blob_hash = (SELECT payload_hash FROM events WHERE event_seq = 7)",
    )
    done = fresh.cli("audit", "log", file.name, "--to", "8")
    assert done.code == 1
    broken = [line.split()[0] for line in done.out.splitlines() if "cannot be read" in line]
    assert broken == ["5", "7"]
    assert "2 events cannot be read. See what is broken: pi-workflows state verify" in done.err
    document = fresh.cli("audit", "log", file.name, "--to", "8", "--json")
    assert document.code == 1
    events = objects(document.document["events"])
    assert [each["event"] for each in events if each["readable"] is False] == [5, 7]


def test_days_and_words_on_a_terminal(file: Path, fresh: Installation) -> None:
    """In a window the day stands above its events, and no line is wider than the window."""
    for columns in (80, 120):
        with terminal(
            fresh, "audit", "log", file.name, "--run", "stuck-1", columns=columns
        ) as shown:
            assert shown.end() == 0
        text = shown.text.splitlines()
        assert len(text[0]) == len("2026-01-31")
        assert max(map(len, text)) <= columns
        assert "pay: invoice.pay (manual), try 1: nobody knows whether it happened" in shown.text


@pytest.mark.parametrize("run_id", RUNS)
def test_the_newest_moment_is_the_file(
    run_id: str, archive: Archive, file: Path, fresh: Installation
) -> None:
    """At its last event a run stands as the server told it."""
    last = numbers(file, fresh, "--run", run_id, "--limit", "10000")[-1]
    done = fresh.cli("audit", "at", file.name, "--event", str(last), "--run", run_id, "--json")
    assert (done.code, done.document["event"]) == (0, last)
    assert done.document["view"] == archive.told[run_id][0]
    assert [path.name for path in fresh.project.iterdir()] == [file.name]


def test_every_moment_of_a_run(file: Path, fresh: Installation) -> None:
    """Each event shows the run as after it: its trace ends where the event's command ends."""
    of_run = numbers(file, fresh, "--run", "ask-1")
    seen: list[int] = []
    for event in of_run:
        document = fresh.cli("audit", "at", file.name, "--event", str(event), "--json").document
        assert document["requestedEvent"] == event
        moved = document["event"]
        assert isinstance(moved, int)
        assert moved >= event
        assert moved in of_run
        seen.append(moved)
    assert seen == sorted(seen)
    assert seen[-1] == of_run[-1]


def test_a_moment_in_words(file: Path, fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """An event in the middle of a command shows the command's end, and the output says so."""
    reserved = numbers(file, fresh, "--run", "stuck-1", "--type", "run.effect_ambiguous")[0]
    done = fresh.cli("audit", "at", file.name, "--event", str(reserved))
    assert done.code == 0
    assert [line for line in lines(done.out, fresh) if "gate:" not in line] == snapshot(
        name="moved"
    )
    before = fresh.cli("audit", "at", file.name, "--event", str(reserved), "--run", "say-1")
    assert "the last of this run up to event" in before.out


def test_a_run_that_a_runner_had(file: Path, fresh: Installation) -> None:
    """Between two events of a step the run is shown as running, not as one that was lost."""
    began = numbers(file, fresh, "--run", "stuck-1", "--type", "attempt.started")[0]
    done = fresh.cli("audit", "at", file.name, "--event", str(began))
    assert "▶ running  A runner had it then." in done.out


def test_moments_that_are_not(file: Path, fresh: Installation) -> None:
    """An event that is not there, and a run that was not there yet, exit 1."""
    for options, code in (
        (("--event", "99999"), "eventMissing"),
        (("--event", "2", "--run", "loop-1"), "runMissing"),
    ):
        done = fresh.cli("audit", "at", file.name, *options, "--json")
        assert (done.code, done.document["code"]) == (1, code)
    missing = fresh.cli("audit", "diff", file.name, "--from", "1", "--to", "99999", "--json")
    assert (missing.code, missing.document["code"]) == (1, "eventMissing")


def test_changes_in_words(file: Path, fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """Rows by table, each column as it was and as it is: times readable, digests short."""
    of_run = numbers(file, fresh, "--run", "ask-1", "--type", "request.submitted")
    end = numbers(file, fresh, "--run", "ask-1")[-1]
    words = ("audit", "diff", file.name, "--from", str(of_run[0] - 1), "--to", str(end))
    done = fresh.cli(*words, "--run", "ask-1")
    assert done.code == 0
    text = VARIES.sub("<varies>", done.out)
    assert lines(text, fresh) == snapshot(name="text")


def test_changes_for_programs(file: Path, fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """The same in one document, digests whole."""
    words = ("audit", "diff", file.name, "--from", "1", "--to", "3", "--run", "say", "--json")
    done = fresh.cli(*words)
    assert done.code == 0
    assert stable(done.document, fresh) == snapshot


def test_no_change(file: Path, fresh: Installation) -> None:
    """From an event to itself nothing changed; from 0 on everything is new."""
    none = fresh.cli("audit", "diff", file.name, "--from", "5", "--to", "5", "--json").document
    assert none["changes"] == []
    first = fresh.cli("audit", "diff", file.name, "--from", "0", "--to", "1", "--json").document
    assert all(each["change"] == "added" for each in objects(first["changes"]))
