"""The documents that programs read: each command's `--json`, on a real server."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from pi_workflows.base.canonical import Json
from tests.cli.installation import WORKFLOWS, Done, Installation, installed
from tests.cli.stable import stable

pytestmark = pytest.mark.slow
LINE = str(WORKFLOWS / "line_workflow.py")
ASKS = str(WORKFLOWS / "asks_workflow.py")
# Which members a view has is the views' own contract; here only that it is one.
VIEW_SCHEMA = "pi-workflows.run-view.v1"


def without_view(document: Json) -> Json:
    """Return a document with a run view in it named, not repeated."""
    assert isinstance(document, dict)
    view = document.get("view")
    if view is None:
        return document
    assert isinstance(view, dict)
    assert view["schema"] == VIEW_SCHEMA
    return {**document, "view": "<view>"}


def seen(done: Done, installation: Installation) -> Json:
    """Return the only document of a command, with what differs from run to run taken out."""
    assert done.err == ""
    return stable(without_view(done.document), installation)


def test_run(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """A run that completes: exit code 0, the outcome and the whole view."""
    done = installation.cli("run", LINE, "--run-id", "run-1", "--json")
    assert done.code == 0
    assert seen(done, installation) == snapshot
    view = done.document["view"]
    assert isinstance(view, dict)
    assert view["runId"] == "run-1"


def test_run_adopts(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """The same run ID with the same content is the same run."""
    installation.cli("run", LINE, "--run-id", "adopt-1", "--json")
    done = installation.cli("run", LINE, "--run-id", "adopt-1", "--json")
    assert done.code == 0
    assert seen(done, installation) == snapshot


def test_run_waiting(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """A run that asks ends the command at once with exit code 10."""
    done = installation.cli("run", ASKS, "--run-id", "ask-1", "--json")
    assert done.code == 10
    assert seen(done, installation) == snapshot


def test_run_detached(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """A run that is not followed has no view."""
    done = installation.cli("run", LINE, "--run-id", "detached-1", "--detach", "--json")
    assert done.code == 0
    assert seen(done, installation) == snapshot


def test_runs(fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """The list is the server's page as it came."""
    fresh.cli("run", LINE, "--run-id", "listed-1")
    document = seen(fresh.cli("runs", "--json"), fresh)
    assert isinstance(document, dict)
    assert {**document, "revision": "<revision>"} == snapshot


def test_show(installation: Installation) -> None:
    """`show` is the run view as it came, canonical to the byte."""
    installation.cli("run", LINE, "--run-id", "show-1")
    document = installation.cli("show", "show-1", "--json").document
    assert document["schema"] == VIEW_SCHEMA
    assert document["runId"] == "show-1"
    assert {"display", "state", "queue", "workflow", "tracePage"} <= set(document)


def test_watch(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """One line for each event with where the run stands, and one last line."""
    installation.cli("run", LINE, "--run-id", "watch-1")
    done = installation.cli("watch", "watch-1", "--json")
    assert done.code == 0
    assert [stable(each, installation) for each in done.documents] == snapshot


def test_events(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """The same lines without `display`, and no last line."""
    installation.cli("run", LINE, "--run-id", "events-1")
    done = installation.cli("events", "events-1", "--json")
    assert done.code == 0
    assert [stable(each, installation) for each in done.documents] == snapshot


def test_events_follow(installation: Installation) -> None:
    """Followed, they end with the run's last line."""
    installation.cli("run", LINE, "--run-id", "events-2")
    plain = installation.cli("events", "events-2", "--json").documents
    followed = installation.cli("events", "events-2", "--json", "--follow").documents
    assert followed[:-1] == plain
    assert followed[-1] == {
        "schema": "pi-workflows.cli-end.v1",
        "runId": "events-2",
        "outcome": "completed",
        "exitCode": 0,
        "seq": len(plain),
        "final": True,
    }


def test_view(installation: Installation) -> None:
    """Without `--once` a view for each change and a last line; with it one view."""
    installation.cli("run", LINE, "--run-id", "view-1")
    *views, end = installation.cli("view", "view-1", "--json").documents
    assert [view["schema"] for view in views] == [VIEW_SCHEMA] * len(views)
    assert (end["schema"], end["final"]) == ("pi-workflows.cli-end.v1", True)
    assert installation.cli("view", "view-1", "--json", "--once").document == views[-1]


@pytest.mark.parametrize("name", ["pause", "resume", "cancel"])
def test_control(name: str, installation: Installation, snapshot: SnapshotAssertion) -> None:
    """A command about a run gives its receipt."""
    installation.cli("run", ASKS, "--run-id", f"{name}-1", "--json")
    done = installation.cli(name, f"{name}-1", "--json")
    assert done.code == 0
    assert seen(done, installation) == snapshot


def test_restart(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """A restart names the new run."""
    installation.cli("run", LINE, "--run-id", "restart-me", "--json")
    done = installation.cli("restart", "restart-me", "--json")
    assert done.code == 0
    assert seen(done, installation) == snapshot


def test_answer(installation: Installation, snapshot: SnapshotAssertion) -> None:
    """An answer is accepted, and completes the same run."""
    installation.cli("run", ASKS, "--run-id", "answer-1", "--json")
    done = installation.cli("answer", "answer-1", '{"decision":"ship"}', "--json")
    assert done.code == 0
    assert seen(done, installation) == snapshot
    assert installation.cli("watch", "answer-1").code == 0


def test_effects(fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """Effects are listed with what they asked for; a resolution gives its receipt."""
    gate = fresh.gate("gate")
    manual = str(WORKFLOWS / "manual_workflow.py")
    value = f'{{"gate":"{gate}"}}'
    done = fresh.cli("run", manual, "--input", value, "--run-id", "pay-1", "--json")
    assert (done.code, done.document["outcome"]) == (12, "parked")
    listed = fresh.cli("effects", "--json")
    assert seen(listed, fresh) == snapshot(name="list")
    (item,) = as_list(listed.document["items"])
    assert isinstance(item, dict)
    shown = fresh.cli("effects", "show", "effect-", "--json")
    assert shown.document == listed.document
    resolve = ("effects", "resolve", str(item["effectId"]), "reject", "--evidence", "not paid")
    resolved = fresh.cli(*resolve, "--json")
    assert resolved.code == 0
    assert seen(resolved, fresh) == snapshot(name="receipt")


def as_list(value: Json) -> list[Json]:
    """Return a JSON array."""
    assert isinstance(value, list)
    return value


def test_workflows(fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """Every workflow of the project and of the user, hidden and faulty ones too; no server."""
    found = fresh.project / ".pi" / "workflows"
    found.mkdir(parents=True)
    for name in ("line", "mistaken"):
        source = WORKFLOWS / f"{name}_workflow.py"
        (found / source.name).write_bytes(source.read_bytes())
    done = fresh.cli("workflows", "--json")
    assert done.code == 0
    assert seen(done, fresh) == snapshot
    assert not fresh.state.exists()


def test_check(fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """A sound file gives its definition, a faulty one every mistake and exit code 1; no server."""
    good = fresh.cli("check", LINE, "--json")
    assert good.code == 0
    assert seen(good, fresh) == snapshot(name="sound")
    bad = fresh.cli("check", str(WORKFLOWS / "mistaken_workflow.py"), "--json")
    assert bad.code == 1
    assert seen(bad, fresh) == snapshot(name="faulty")
    assert not fresh.state.exists()


def test_state(fresh: Installation, snapshot: SnapshotAssertion) -> None:
    """Status, verification and backup give the server's receipts."""
    fresh.cli("run", LINE, "--run-id", "stored-1")
    status = seen(fresh.cli("state", "status", "--json"), fresh)
    assert isinstance(status, dict)
    sizes = {"sizeBytes": "<bytes>", "walBytes": "<bytes>"}
    assert {**status, **sizes} == snapshot(name="status")
    found = seen(fresh.cli("state", "verify", "--json"), fresh)
    assert isinstance(found, dict)
    assert {**found, "checked": "<checks>"} == snapshot(name="verify")
    copy = fresh.root / "copy.sqlite"
    backup = seen(fresh.cli("state", "backup", "../copy.sqlite", "--json"), fresh)
    assert isinstance(backup, dict)
    assert backup["bytes"] == copy.stat().st_size
    assert {**backup, "bytes": "<bytes>"} == snapshot(name="backup")


def test_server(snapshot: SnapshotAssertion) -> None:
    """Starting, starting beside a live one, stopping, stopping without one; status by hand."""
    with installed() as made:
        missing = made.cli("server", "status", "--json")
        assert missing.code == 3
        assert missing.document == snapshot(name="missing")
        words = [
            ("start",),
            ("start",),
            ("status",),
            ("status", "--calibrate"),
            ("stop",),
            ("stop",),
        ]
        for index, each in enumerate(words):
            done = made.cli("server", *each, "--json")
            assert done.code == 0, done.out
            document = seen(done, made)
            if each[0] != "status":
                assert document == snapshot(name=f"{index} {' '.join(each)}")
                continue
            assert isinstance(document, dict)
            assert document["schema"] == "pi-workflows.cli-server-status.v1"
            assert ("calibration" in document) == (len(each) > 1)
