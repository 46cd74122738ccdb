"""`show --page`: windows of a run as lines, and the way from one to the next."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base.blob import Blob
from pi_workflows.base.canonical import Json
from pi_workflows.domain.follow_up.queue import QueueFollowUp
from pi_workflows.domain.session.capture import RecordEntries
from pi_workflows.domain.session.records import NewEntry
from tests.cli.archive import ROUNDS
from tests.cli.installation import WORKFLOWS, Done, Installation
from tests.cli.stable import stable_text
from tests.cli.terminal import terminal
from tests.kernel import conversing
from tests.kernel.harness import Harness
from tests.kernel.recording import bind, events

pytestmark = pytest.mark.slow
LINE = str(WORKFLOWS / "line_workflow.py")
WAY = re.compile(r"^(?:Before|After): pi-workflows (?P<words>.+)$", re.MULTILINE)


def way(done: Done, name: str) -> list[str] | None:
    """Return the command that leads to the page before or after, if there is one."""
    found = [match for match in WAY.finditer(done.err) if match[0].startswith(name)]
    return shlex.split(found[0]["words"]) if found else None


@pytest.mark.parametrize("kind", ["steps", "trace", "trace_at_step"])
def test_a_page_is_lines(
    kind: str, installation: Installation, snapshot: SnapshotAssertion
) -> None:
    """Steps are a table with what each gave; events are lines as `events` has them."""
    installation.cli("run", LINE, "--run-id", "paged-1")
    done = installation.cli("show", "paged-1", "--page", kind, "--cursor", "1")
    assert done.code == 0
    assert stable_text(done.out, installation) == snapshot(name="out")
    assert done.err == snapshot(name="err")


def test_a_failed_step_says_why(file: Path, fresh: Installation) -> None:
    """In place of what a step gave stands its error; its event has it, too."""
    for kind in ("steps", "trace_at_step"):
        words = ("show", "break-1", "--page", kind, "--cursor", "0", "--file", file.name)
        done = fresh.cli(*words)
        assert done.code == 0
        assert "ValueError: it broke" in done.out


def test_progress_is_a_page(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """What nodes said last of their progress is a table; without any a line says so."""
    installation.start("tells", "told-1")
    assert installation.cli("watch", "told-1").code == 0
    done = installation.cli("show", "told-1", "--page", "updates")
    assert (done.code, done.err) == (0, "Updates 1 to 2; the run has 2 updates.\n")
    assert stable_text(done.out, installation) == snapshot
    installation.cli("run", LINE, "--run-id", "silent-1")
    none = installation.cli("show", "silent-1", "--page", "updates")
    assert (none.code, none.out, none.err) == (0, "", "No updates.\n")


def test_all_that_a_run_gave_is_a_page(installation: Installation) -> None:
    """Values that a view only refers to are there in full; a run that gave nothing has none."""
    installation.start("tells", "gave-1")
    assert installation.cli("watch", "gave-1").code == 0
    done = installation.cli("show", "gave-1", "--page", "aggregate")
    assert (done.code, done.err) == (0, "")
    assert "finalOutput" in done.out
    assert "outcome: ok" in done.out
    programs = installation.cli("show", "gave-1", "--page", "aggregate", "--json").document
    assert programs["schema"] == "pi-workflows.run-aggregate.v1"
    assert {"outputs", "results", "finalOutput"} < programs.keys()
    installation.start("gated", "none-1", f'{{"gate":"{installation.gate("none")}"}}')
    none = installation.cli("show", "none-1", "--page", "aggregate")
    assert (none.code, none.out, none.err) == (0, "", "Nothing was given yet.\n")


def test_a_file_holds_no_document_of_all(file: Path, fresh: Installation) -> None:
    """What would have to be stored first is refused where nothing may be written."""
    done = fresh.cli("show", "loop-1", "--page", "aggregate", "--file", file.name)
    assert (done.code, done.out) == (1, "")
    assert "Only a server can do that" in done.err


def test_what_was_captured_of_sessions_is_a_page(tmp_path: Path, fresh: Installation) -> None:
    """Entries are told by who said what, events by what they are about, and both in windows."""
    said: dict[str, Json] = {
        "role": "assistant",
        "content": [
            {"type": "text", "text": "I look\x1b[2J\nat it."},
            {"type": "toolCall", "name": "read"},
        ],
    }
    model: dict[str, Json] = {"type": "model_change", "id": "e2", "modelId": "large"}
    shapes: tuple[dict[str, Json], ...] = ({"type": "message", "id": "e1", "message": said}, model)
    bench = Harness(tmp_path / "state")
    bench.do(bench.start(session="session-1"))
    bench.do(bind(session="session-1"))
    records = (NewEntry.of(seq, shape, "entries") for seq, shape in enumerate(shapes, 1))
    bench.do(RecordEntries("run-1", None, tuple(records)))
    bench.do(events(range(1, 301)))
    bench.store.close()
    words = ("show", "run-1", "--file", str(tmp_path / "state" / "state.sqlite"), "--page")
    entries = fresh.cli(*words, "session_entries")
    assert (entries.code, entries.err) == (0, "Entries 1 to 2; the run has 2 entries.\n")
    _, first, second = [line.split()[3:] for line in entries.out.splitlines()]
    assert " ".join(first) == "assistant I look\\x1b[2J at it. read"
    assert " ".join(second) == "model_change " + '{"modelId":"large"}'
    done = fresh.cli(*words, "session_events")
    assert done.out.splitlines()[-1].split()[3:] == ["turn_started", "turnIndex=300"]
    assert done.err.startswith("Session events 45 to 300; the run has 300 session events.\n")
    before = way(done, "Before")
    assert before is not None
    assert fresh.cli(*before).code == 0
    assert fresh.cli(*words, "session_events", "--json").document["kind"] == "session_events"


def test_messages_and_follow_ups_have_pages(tmp_path: Path, fresh: Installation) -> None:
    """What became of each and what it says, in one line; of settings that there are none."""
    bench = Harness(tmp_path / "state")
    conversing.asked(bench)
    conversing.working(bench)
    bench.do(QueueFollowUp("run-1", "request-1", Blob.text("Then\nrest.")))
    bench.store.close()
    words = ("show", "run-1", "--file", str(tmp_path / "state" / "state.sqlite"), "--page")
    told = fresh.cli(*words, "workflow_messages")
    assert (told.code, told.err) == (0, "Messages 1 to 2; the run has 2 messages.\n")
    assert told.out.splitlines()[1].split()[3:8] == ["step", "sent", "open", "Plan", "it."]
    queued = fresh.cli(*words, "follow_ups")
    assert queued.out.splitlines()[1].split()[3:] == ["queued", "control", "Then", "rest."]
    none = fresh.cli(*words, "settings")
    assert (none.code, none.out, none.err) == (0, "", "No scopes.\n")


def test_pages_lead_to_one_another(file: Path, fresh: Installation) -> None:
    """From the end back and on again, each page names its neighbours, and no step is left out."""
    words: list[str] | None = ["show", "loop-1", "--page", "steps", "--file", file.name]
    seen: set[int] = set()
    pages: list[list[int]] = []
    first = words
    for name in ("Before", "After"):
        words = first
        while words is not None:
            done = fresh.cli(*words)
            steps = [int(line.split()[0]) for line in done.out.splitlines()[1:]]
            assert steps == list(range(steps[0], steps[-1] + 1))
            pages.append(steps)
            seen |= set(steps)
            first, words = words, way(done, name)
    assert seen == set(range(ROUNDS + 1))
    assert pages[0][-1] == pages[-1][-1] == ROUNDS
    done = fresh.cli("show", "loop-1", "--page", "trace", "--cursor", "0", "--file", file.name)
    assert way(done, "Before") is None
    following = way(done, "After")
    assert following is not None
    assert following[:5] == ["show", "loop-1", "--page", "trace", "--cursor"]


def test_programs_read_the_page_as_it_came(file: Path, fresh: Installation) -> None:
    """With `--json` the page's document is written, and nothing beside it."""
    words = ("show", "loop-1", "--page", "trace_at_step", "--cursor", "7", "--file", file.name)
    done = fresh.cli(*words, "--json")
    document = done.document
    assert (document["schema"], document["kind"]) == ("pi-workflows.run-page.v1", "trace_at_step")
    assert (document["cursor"], done.err) == (7, "")
    items: Json = document["items"]
    assert isinstance(items, list)
    steps = [str(item["payload"]) for item in items if isinstance(item, dict)]
    assert any("'stepIndex': 7" in step for step in steps)


def test_the_event_of_the_step_stands_out(file: Path, fresh: Installation) -> None:
    """On a terminal the end of the step that was asked for is bold."""
    words = ("show", "loop-1", "--page", "trace_at_step", "--cursor", "7", "--file", file.name)
    with terminal(fresh, *words, columns=120) as shown:
        assert shown.end() == 0
    (bold,) = [line for line in shown.raw.splitlines() if "\x1b[1m" in line]
    assert "attempt.settled" in bold


@pytest.mark.parametrize(
    "words",
    [
        ("--cursor", "3"),
        ("--page", "secrets"),
        ("--page", "steps", "--cursor", "-1"),
        ("--page", "aggregate", "--cursor", "1"),
    ],
    ids=["no page", "kind", "cursor", "one document"],
)
def test_wrong_usage_is_exit_code_2(words: tuple[str, ...], fresh: Installation) -> None:
    """A place without a page, a page of nothing and a place before the first are refused."""
    done = fresh.cli("show", "run-1", *words)
    assert (done.code, done.out) == (2, "")
    assert not (fresh.state / "host").exists()
