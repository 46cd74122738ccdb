"""Events as lines and documents: aligned, with reasons and figures, and members for programs."""

from __future__ import annotations

from pi_workflows.base.canonical import Json
from pi_workflows.cli.run_view import TraceItem
from pi_workflows.cli.trace import Columns, change_document, change_lines, described
from tests.cli.views import START_MS, run_view, step


def item(seq: int, kind: str, payload: dict[str, Json] | None = None) -> TraceItem:
    """Return an event of the node `copy`."""
    document: dict[str, Json] = {
        "seq": seq,
        "at": START_MS,
        "type": kind,
        "node_id": "copy",
        "attempt_id": f"attempt-copy-{seq}",
        "payload": payload or {},
    }
    return TraceItem.model_validate(document, by_name=True)


FAILED: dict[str, Json] = {"outcome": "failed", "elapsedMs": 500, "errorStored": True}
VIEW = run_view(
    {"copy": {}, "a-long-name": {}},
    graphSteps=[step("copy", "failed", number=7)],
    state={"results": {"copy": {"outcome": "failed", "error": {"code": "x", "message": "newest"}}}},
    updates=[
        {
            "seq": 5,
            "at": START_MS,
            "nodeId": "copy",
            "type": "progress",
            "key": "files",
            "data": {"completed": 30, "total": 120, "unit": "files"},
        }
    ],
)


def test_a_failure_says_why() -> None:
    """The newest attempt of a node has its reason in the view, an older one in its step."""
    assert described(item(7, "attempt.settled", FAILED), VIEW) == "failed after 0.5 s: newest"
    older = item(3, "attempt.settled", FAILED)
    assert described(older, VIEW) == "failed after 0.5 s"
    errors: dict[str, Json] = {"attempt-copy-3": {"code": "x", "message": "older\nmore"}}
    assert described(older, VIEW, errors) == "failed after 0.5 s: older"


def test_a_detail_that_repeats_the_event_is_left_out() -> None:
    """A pause is not told as paused twice; a detail that says more is."""
    assert described(item(1, "run.paused", {"detail": "paused"})) == ""
    assert described(item(1, "run.paused", {"detail": "by hand"})) == "by hand"


def test_progress_has_its_figures() -> None:
    """The newest update of a key is told with its data, an older one by its name."""
    payload: dict[str, Json] = {"type": "progress", "key": "files"}
    assert described(item(5, "update.recorded", payload), VIEW).endswith("30 of 120 files")
    assert described(item(4, "update.recorded", payload), VIEW) == "progress files"


def test_columns_stand_below_each_other() -> None:
    """One run alone is not named; of several each line names its run in a column."""
    lines = [
        line
        for seq, kind in ((5, "attempt.started"), (1_234, "run.queue_settled"))
        for line in change_lines("run-1", item(seq, kind), Columns.of(VIEW), "words")
    ]
    assert len(lines) == 2
    assert len({line.index("words") for line in lines}) == 1
    assert not any("run-1" in line for line in lines)
    [named] = change_lines("run-1", item(5, "x"), Columns.of(VIEW, run=5), "")
    assert "  run-1     5  " in named


def test_words_that_do_not_fit_stand_below_their_event() -> None:
    """In a window a line breaks between words and below its type; a pipe gets one line an event."""
    words = "failed after 0.5 s: there is no space left on the device that holds the backups"
    columns = Columns.of(VIEW)
    event = item(5, "attempt.settled")
    first, *below = change_lines("run-1", event, columns, words, window=80)
    assert first.endswith("attempt.settled      copy")
    assert {len(line) - len(line.lstrip()) for line in below} == {first.index("attempt")}
    assert " ".join(line.strip() for line in below) == words
    assert all(len(line) <= 80 for line in below)
    assert len(change_lines("run-1", event, columns, words)) == 1
    assert len(change_lines("run-1", event, columns, "ok", window=80)) == 1


def test_a_new_start_is_dated_only_when_it_is_later() -> None:
    """A run that may go on at once has no date behind its reason, which would look like another."""
    at_once: dict[str, Json] = {"reason": "the server was lost", "availableAt": START_MS}
    assert described(item(2, "run.requeued", at_once)) == "the server was lost"
    later = described(item(2, "run.requeued", at_once | {"availableAt": START_MS + 2_000}))
    assert later.startswith("the server was lost; not again before ")


def test_programs_get_what_an_event_has() -> None:
    """Outcome, duration, attempt and error code are members where the event has them."""
    settled = change_document("run-1", item(7, "attempt.settled", FAILED))
    assert (settled["outcome"], settled["durationMs"]) == ("failed", 500)
    started = change_document("run-1", item(6, "attempt.started", {"visit": 2, "attemptNumber": 3}))
    assert (started["visit"], started["attemptNumber"]) == (2, 3)
    parked = change_document("run-1", item(8, "run.parked", {"code": "importError"}))
    assert parked["errorCode"] == "importError"
    assert (
        change_document("run-1", item(9, "run.failed", {"status": "failed"}))["outcome"] == "failed"
    )
    assert "outcome" not in change_document("run-1", item(1, "run.queued"))
