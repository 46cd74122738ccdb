"""Looking into a backup: the same runs as the live server told them, in the same words."""

from __future__ import annotations

import signal
import stat
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.store.driver import connect
from tests.cli.archive import HOSTILE, RUNS, UNTOLD, Archive, spoil
from tests.cli.installation import Installation
from tests.cli.stable import stable, stable_text
from tests.cli.terminal import terminal

pytestmark = pytest.mark.slow
WAIT_S = 60


def lines(text: str, fresh: Installation) -> list[str]:
    """Return lines without what differs from run to run."""
    return stable_text(text, fresh).replace(str(fresh.root.parent), "<tmp>").splitlines()


@pytest.mark.parametrize("run_id", RUNS)
def test_a_file_tells_what_the_server_told(
    run_id: str, archive: Archive, file: Path, fresh: Installation
) -> None:
    """`show` and `events` of a backup are, byte for byte, what the live server answered."""
    view, events = archive.told[run_id]
    assert fresh.cli("show", run_id, "--file", file.name, "--json").document == view
    assert fresh.cli("events", run_id, "--file", file.name, "--json").documents == events
    assert not fresh.state.exists()
    assert [path.name for path in fresh.project.iterdir()] == [file.name]


def test_what_is_offered_of_a_file(
    file: Path, fresh: Installation, snapshot: SnapshotAssertion
) -> None:
    """A run of a file stands as of its newest event; only what a file can answer is offered."""
    done = fresh.cli("show", "stuck", "--file", file.name)
    assert (done.code, done.err) == (0, "")
    assert [line for line in lines(done.out, fresh) if "gate:" not in line] == snapshot


def test_content_of_a_file(file: Path, fresh: Installation) -> None:
    """A value that is too large for a view is read from the file, now and at an event."""
    shown = fresh.cli("show", "large-1", "--file", file.name).out
    assert "- item 39" in shown
    listed = fresh.cli(
        "audit", "log", file.name, "--run", "large-1", "--type", "run.waiting", "--json"
    ).document["events"]
    assert isinstance(listed, list)
    asked = listed[0]
    assert isinstance(asked, dict)
    at = fresh.cli("audit", "at", file.name, "--event", str(asked["event"]))
    assert "- item 39" in at.out


def test_runs_that_a_file_does_not_have(file: Path, fresh: Installation) -> None:
    """A run of no such name exits 1 and says how to list them; following a file is wrong usage."""
    for words in (("show",), ("events",), ("audit", "log"), ("audit", "at"), ("audit", "capsule")):
        options = {
            "at": ("--event", "1", "--run", "gone"),
            "log": ("--run", "gone"),
            "capsule": ("--run", "gone", "--to", "new"),
        }.get(words[-1], ("gone", "--file", file.name))
        target = (file.name,) if words[0] == "audit" else ()
        done = fresh.cli(*words, *target, *options, "--json")
        assert (done.code, done.document["code"]) == (1, "runMissing"), words
        assert "audit log copy.sqlite --type run.queued" in str(done.document["hint"])
    follow = fresh.cli("events", "say-1", "--file", file.name, "--follow", "--json")
    assert (follow.code, follow.document["field"]) == (2, "--follow")
    assert not fresh.state.exists()


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "rebuild", "{file}"),
        ("audit", "log", "{file}"),
        ("audit", "at", "{file}", "--event", "1"),
        ("audit", "diff", "{file}", "--from", "1", "--to", "2"),
        ("audit", "capsule", "{file}", "--run", "r", "--to", "new"),
        ("show", "r", "--file", "{file}"),
        ("events", "r", "--file", "{file}"),
    ],
    ids=" ".join,
)
def test_refused_files(words: tuple[str, ...], file: Path, fresh: Installation) -> None:
    """What is no database of ours exits 4, what is not there 2, and nothing is left behind."""
    (fresh.project / "text").write_text("no database")
    file.with_name(f"{file.name}-wal").write_bytes(b"x")
    for name, code, reason in (
        ("text", 4, "stateIncompatible"),
        (file.name, 4, "notSelfContained"),
        (".", 4, "notRegularFile"),
        ("gone", 2, "fileMissing"),
    ):
        done = fresh.cli(*(word.format(file=name) for word in words), "--json")
        assert (done.code, done.document["code"]) == (code, reason)
    assert {path.name for path in fresh.project.iterdir()} == {
        "text", file.name, f"{file.name}-wal"
    }  # fmt: skip


def test_rebuilt_database(file: Path, fresh: Installation) -> None:
    """What the log gives is kept as a private file that verifies; an existing name is refused."""
    before = file.read_bytes()
    done = fresh.cli("audit", "rebuild", file.name, "--to", "new.sqlite", "--json")
    new = fresh.project / "new.sqlite"
    assert (done.code, done.document["destination"]) == (0, str(new))
    assert stat.S_IMODE(new.stat().st_mode) == 0o600
    assert fresh.cli("state", "verify", new.name, "--json").document["valid"] is True
    again = fresh.cli("audit", "rebuild", file.name, "--to", "new.sqlite", "--json")
    assert again.code == 1
    assert file.read_bytes() == before


def test_a_capsule(file: Path, fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """A run and its restarts become a file that says what it holds, verifies, and is read alike."""
    done = fresh.cli("audit", "capsule", file.name, "--run", "break", "--to", "c.sqlite")
    assert done.code == 0
    assert lines(done.out, fresh) == snapshot(name="text")
    assert lines(done.err, fresh) == snapshot(name="notes")
    made = fresh.cli("audit", "capsule", file.name, "--run", "break", "--to", "d.sqlite", "--json")
    assert stable({**made.document, "bytes": "<bytes>"}, fresh) == snapshot(name="json")
    assert fresh.cli("state", "verify", "c.sqlite").code == 0
    for words in (("events", "break-1"), ("show", "break-1")):
        both = [fresh.cli(*words, "--file", name, "--json").out for name in (file.name, "c.sqlite")]
        assert both[0] == both[1]
    assert fresh.cli("show", "say-1", "--file", "c.sqlite").code == 1
    again = fresh.cli("audit", "capsule", file.name, "--run", "break", "--to", "c.sqlite", "--json")
    assert again.code == 1


def test_a_capsule_of_what_is_broken(file: Path, fresh: Installation) -> None:
    """What is broken is handed on broken: the capsule is written, and names the violation."""
    spoil(file, "UPDATE runs SET title = 'forged' WHERE run_id = 'say-1'")
    done = fresh.cli("audit", "capsule", file.name, "--run", "say", "--to", "c.sqlite", "--json")
    assert (done.code, done.document["valid"]) == (1, False)
    assert done.document["violations"]
    assert (fresh.project / "c.sqlite").exists()


def test_a_file_that_contradicts_itself(file: Path, fresh: Installation) -> None:
    """A row that leads nowhere is damage of the file: exit 4, and the command that names it."""
    spoil(
        file,
        "DELETE FROM blobs WHERE blob_hash ="
        " (SELECT definition_hash FROM workflow_definitions WHERE workflow_name = 'line')",
    )
    done = fresh.cli("show", "say-1", "--file", file.name, "--json")
    assert done.code == 4
    assert file.name in str(done.document["message"])
    spoil(
        file,
        "UPDATE blobs SET content = CAST('{}' AS BLOB), byte_length = 2 WHERE blob_hash ="
        " (SELECT definition_hash FROM workflow_definitions WHERE workflow_name = 'asks')",
    )
    broken = fresh.cli("show", "ask-1", "--file", file.name, "--json")
    assert (broken.code, broken.document["code"]) == (4, "contradiction")
    assert broken.document["hint"] == "See what is broken: pi-workflows state verify copy.sqlite"
    assert fresh.cli("state", "verify", file.name).code == 1


def test_a_title_on_a_terminal(file: Path, fresh: Installation) -> None:
    """What a title would command is shown, in every list and view of a file."""
    for words in (
        ("audit", "log", file.name, "--run", "say-1"),
        ("show", "say-1", "--file", file.name),
        ("audit", "at", file.name, "--event", "3"),
        ("audit", "diff", file.name, "--from", "0", "--to", "1"),
    ):
        with terminal(fresh, *words) as shown:
            assert shown.end() == 0
        assert not set(HOSTILE) & set(shown.text) - set("\nevilowned]0;[2J31m")
        assert r"\x1b]0;owned\x07" in shown.text


def test_a_pipe_that_closes(file: Path, fresh: Installation) -> None:
    """When the reader of a long log goes away the command ends without a word."""
    with fresh.spawned("audit", "log", file.name) as child:
        assert child.stdout is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr is not None
        assert child.stderr.read() == b""
        assert child.wait(WAIT_S) == 141


def test_an_interrupted_verification(file: Path, fresh: Installation) -> None:
    """Ctrl-C ends a verification and leaves no file of its own behind."""
    with fresh.spawned("state", "verify", file.name, "--json", "--progress") as child:
        assert child.stdout is not None
        while b'"replay"' not in child.stdout.readline():
            pass
        child.send_signal(signal.SIGINT)
        assert child.wait(WAIT_S) in (0, 130)
    assert [path.name for path in fresh.project.iterdir()] == [file.name]


def test_what_a_person_sees_who_waits(file: Path, fresh: Installation) -> None:
    """A bar stands on the terminal while a file or the live state is checked, and goes away."""
    for words, title in (
        (("state", "verify", file.name), "Verifying"),
        (("audit", "rebuild", file.name), "Replaying"),
        (("audit", "at", file.name, "--event", "5"), "Replaying"),
        (("audit", "capsule", file.name, "--run", "say", "--to", "c.sqlite"), "Writing"),
        (("state", "verify"), "Verifying the live state"),
    ):
        with terminal(fresh, *words) as shown:
            assert shown.end() == 0
        assert title in shown.text


def test_no_log_tells_a_value(file: Path, fresh: Installation) -> None:
    """Neither a stored value nor who exactly it was is in anything that a log or a diff prints."""
    connection = connect(str(file))
    (private,) = zip(*connection.execute(
        "SELECT actor_id FROM events WHERE actor_id IS NOT NULL"
        " UNION SELECT owner_id FROM effect_attempts WHERE owner_id IS NOT NULL"
    ), strict=True)  # fmt: skip
    connection.close()
    assert private
    for words in (
        ("audit", "log", file.name),
        ("audit", "log", file.name, "--json", "--limit", "10000"),
        ("audit", "diff", file.name, "--from", "0", "--to", "60"),
        ("audit", "diff", file.name, "--from", "0", "--to", "60", "--json"),
    ):
        out = fresh.cli(*words).out
        assert UNTOLD not in out
        assert not [each for each in private if str(each) in out]
