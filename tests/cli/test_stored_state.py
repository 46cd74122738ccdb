"""The offline commands: what they find, what they refuse, and that they leave no trace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base.canonical import Json
from pi_workflows.store.driver import connect
from tests.cli.installation import WORKFLOWS, Installation, installed
from tests.cli.stable import stable

pytestmark = pytest.mark.slow
LINE = str(WORKFLOWS / "line_workflow.py")


@pytest.fixture(scope="module")
def source() -> Iterator[bytes]:
    """Return the bytes of a backup after one run."""
    with installed() as made:
        made.cli("run", LINE, "--run-id", "run-1")
        assert made.cli("state", "backup", str(made.root / "copy.sqlite")).code == 0
        yield (made.root / "copy.sqlite").read_bytes()


@pytest.fixture
def copy(source: bytes, fresh: Installation) -> Path:
    """Return a backup that a test may spoil."""
    path = fresh.project / "copy.sqlite"
    path.write_bytes(source)
    return path


def as_list(value: Json) -> list[Json]:
    """Return a JSON array."""
    assert isinstance(value, list)
    return value


def spoil(copy: Path, statement: str) -> None:
    """Let a hand change a file."""
    connection = connect(str(copy))
    connection.execute(statement)
    connection.close()


def test_a_sound_backup(copy: Path, fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """It verifies and rebuilds, quickly and in full, without a server and without a trace."""
    before = copy.read_bytes()
    verify = fresh.cli("state", "verify", copy.name, "--json")
    quick = fresh.cli("state", "verify", copy.name, "--json", "--quick")
    rebuild = fresh.cli("audit", "rebuild", copy.name, "--json")
    assert [verify.code, quick.code, rebuild.code] == [0, 0, 0]
    checks = [{str(name) for name in as_list(each.document["checked"])} for each in (quick, verify)]
    assert checks[0] < checks[1]
    assert {**verify.document, "checked": "<checks>"} == snapshot(name="verify")
    assert rebuild.document == snapshot(name="rebuild")
    assert copy.read_bytes() == before
    assert [path.name for path in fresh.project.iterdir()] == [copy.name]
    assert not fresh.state.exists()


def test_progress_for_programs(copy: Path, fresh: Installation) -> None:
    """With `--progress` there is a line for each check and a last one."""
    done = fresh.cli("state", "verify", copy.name, "--json", "--progress")
    *lines, last = done.documents
    assert [line["check"] for line in lines] == last["checked"]
    assert {line["final"] for line in lines if isinstance(line["final"], bool)} == {False}
    assert (last["schema"], last["final"]) == ("pi-workflows.cli-verify.v1", True)


def test_violations(copy: Path, fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """A broken rule exits 1 and names what is broken, in text and for programs."""
    spoil(copy, "UPDATE runs SET title = 'forged'")
    done = fresh.cli("state", "verify", copy.name, "--json")
    assert (done.code, done.document["valid"]) == (1, False)
    assert done.document["violations"] == snapshot(name="json")
    text = fresh.cli("state", "verify", copy.name)
    assert text.code == 1
    assert text.out.splitlines()[1:] == snapshot(name="text")


def test_differences(copy: Path, fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """Rows that differ exit 1 and are named by table, key and columns."""
    spoil(copy, "UPDATE runs SET title = 'forged'")
    spoil(copy, "DELETE FROM run_steps WHERE step_index = 1")
    done = fresh.cli("audit", "rebuild", copy.name, "--json")
    assert done.code == 1
    assert stable(done.document, fresh) == snapshot(name="json")
    text = fresh.cli("audit", "rebuild", copy.name)
    assert text.code == 1
    assert text.out.splitlines() == snapshot(name="text")


@pytest.mark.parametrize("words", [("state", "verify"), ("audit", "rebuild")])
def test_refused_files(words: tuple[str, ...], copy: Path, fresh: Installation) -> None:
    """A file of another kind, an incomplete one and the live one exit 4; bytes stay as they are."""
    (fresh.project / "text").write_text("no database")
    text = fresh.cli(*words, "text", "--json")
    assert (text.code, text.document["code"]) == (4, "stateIncompatible")
    assert text.document["message"] == "text is not a Pi Workflows database of this version."
    copy.with_name(f"{copy.name}-wal").write_bytes(b"x")
    incomplete = fresh.cli(*words, copy.name, "--json")
    assert (incomplete.code, incomplete.document["code"]) == (4, "notSelfContained")
    directory = fresh.cli(*words, ".", "--json")
    assert (directory.code, directory.document["code"]) == (4, "notRegularFile")
    assert fresh.cli("server", "start").code == 0
    (fresh.project / "link").symlink_to(fresh.state)
    for path in (fresh.state / "state.sqlite", fresh.project / "link" / "state.sqlite"):
        live = fresh.cli(*words, str(path), "--json")
        assert (live.code, live.document["code"]) == (4, "liveFile")
        assert "pi-workflows state backup" in str(live.document["hint"])


def test_a_damaged_file(copy: Path, fresh: Installation) -> None:
    """A file that cannot be read to its end never ends in a traceback."""
    content = bytearray(copy.read_bytes())
    for at in range(8_192, len(content), 4_096):
        content[at : at + 64] = b"\xff" * 64
    copy.write_bytes(content)
    for words in (("state", "verify"), ("audit", "rebuild")):
        done = fresh.cli(*words, copy.name, "--json")
        assert done.code in (1, 4)
        if done.code != 1:
            assert copy.name in str(done.document["message"])
            assert done.document["hint"] == "Restore a backup."
        assert done.err == ""
