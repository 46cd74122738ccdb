"""Rows of the tables that no command writes yet: as they must be, no rule finds fault with them."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from pi_workflows.base import ids
from pi_workflows.base.blob import Blob
from pi_workflows.base.sql import SqlValue
from pi_workflows.domain.decision.request import Asked
from pi_workflows.domain.session.reducer import ReplayState
from pi_workflows.store.capture import EMPTY_DIGEST, entry_digest
from pi_workflows.store.driver import Connection, connect
from tests.specimens.checked import check

VALUE = Blob.json({"kind": "sample"})
PATCH = Blob.json([{"op": "replace", "path": "/status", "value": "running"}])
CHECKPOINT_EVENTS = 256
# Nothing is open after events of a kind that nobody writes.
STATE = ReplayState(through_seq=CHECKPOINT_EVENTS).reduced().blob()


def _row(table: str, columns: dict[str, SqlValue]) -> tuple[str, dict[str, SqlValue]]:
    """Return a row of a table, whose values may be places: `:ended`."""
    return table, columns


ROWS: tuple[tuple[str, dict[str, SqlValue]], ...] = (
    # Settings that an attempt had, and what follows a run.
    _row("workflow_settings",
     {"scope_id": "scope", "resource_id": "settings-scope", "origin_run_id": ":waits",
      "active_run_id": ":waits", "mount_path": "", "invocation": 1, "initial_hash": VALUE.digest,
      "current_hash": VALUE.digest, "created_at": 1, "updated_at": 1}),
    _row("workflow_follow_ups",
     {"follow_up_id": "later", "resource_id": "follow_up-later", "run_id": ":waits",
      "request_id": "q", "order_number": 1, "target_session_id": "s", "actor_type": "human",
      "source_type": "person", "prompt_hash": VALUE.digest, "status": "queued", "created_at": 1,
      "updated_at": 1}),
    # What Pi is told, and what it does.
    *(_row("workflow_messages",
       {"workflow_message_id": key, "run_id": run_id, "target_session_id": "s", "kind": kind,
        "source_id": source, "content_hash": VALUE.digest, "order_number": number,
        "status": status, "pi_session_entry_id": entry, "created_at": 1, "updated_at": 1,
        "resource_id": f"message-{key}"})
      for number, (key, run_id, kind, source, status, entry) in enumerate((
          ("asks", ":waits", "step", ":request", "pending", None),
          ("asked", ":waits", "step", ":request", "sent", "entry-1"),
          ("tells", ":ended", "terminal", ":ended", "sent", "entry-2"),
          ("follows", ":waits", "followUp", "later", "pending", None),
          ("notes", ":waits", "notification", "visit", "sent", "entry-3"),
          ("decides", ":ended", "decision", "decision", "cancelled", None)), 1)),
    _row("workflow_turns",
     {"workflow_turn_id": "turn", "workflow_message_id": "asked", "run_id": ":waits",
      "target_session_id": "s", "state": "started", "started_at": 1}),
    # A decision that a person made, and the delivery of its question.
    _row("human_decisions",
     {"decision_id": "decision", "resource_id": "decision-decision", "run_id": ":ended",
      "attempt_id": ":attempt", "audience": "operator", "title": "Go on?",
      "subject_hash": VALUE.digest, "presentation_hash": VALUE.digest,
      "choices_hash": VALUE.digest, "request_digest": VALUE.digest, "presentation_revision": 1,
      "deadline_at": 5, "default_response_hash": VALUE.digest, "request_hash": VALUE.digest,
      "created_at": 1}),
    _row("human_decision_resolutions",
     {"decision_id": "decision", "outcome": "accepted", "provenance": "human",
      "response_hash": VALUE.digest, "request_digest": VALUE.digest, "resolved_at": 4}),
    *(_row("human_decision_submissions",
       {"decision_id": "decision", "attempt_id": outcome, "source": "human",
        "candidate_hash": VALUE.digest, "outcome": outcome, "submitted_at": 1})
      for outcome in ("won", "already_resolved")),
    _row("channels",
     {"channel_id": "chat", "resource_id": "channel-chat", "adapter_type": "telegram",
      "profile_key": "default", "created_at": 1}),
    _row("channel_messages",
     {"message_id": "delivery", "channel_id": "chat", "decision_id": "decision",
      "purpose": "delivery", "content_hash": VALUE.digest, "status": "confirmed", "created_at": 1,
      "updated_at": 1}),
    _row("effects",
     {"effect_id": ids.effect_id("decision-decision", "deliver", "delivery"),
      "resource_id": "effect-delivery", "source_resource_id": "decision-decision",
      "source_revision": 0, "effect_type": "deliver", "idempotency_key": "delivery",
      "payload_hash": VALUE.digest, "owner_scope": "channel", "status": "applied",
      "attempt_count": 1, "result_hash": VALUE.digest, "created_at": 1, "updated_at": 1,
      "settled_at": 1}),
    _row("effect_attempts",
     {"effect_id": ids.effect_id("decision-decision", "deliver", "delivery"), "attempt_number": 1,
      "owner_id": "chat", "lease_generation": 0, "started_at": 1, "finished_at": 1,
      "outcome": "applied", "result_hash": VALUE.digest}),
    # A managed resource and the run that it asked for.
    *(_row("controller_resources",
       {"controller_resource_id": key, "resource_id": f"controller-{key}",
        "controller_name": "deploys", "resource_key": key, "uid": key, "generation": 1,
        "spec_hash": VALUE.digest, "status_hash": VALUE.digest, "created_at": 1, "updated_at": 1})
      for key in ("one", "two")),
    *(_row("controller_finalizers",
       {"controller_resource_id": "one", "finalizer": name, "position": position})
      for position, name in enumerate(("first", "last"))),
    *(_row("controller_workflows",
       {"request_id": key, "controller_resource_id": "one", "request_key": key,
        "workflow_name": "sample", "input_fingerprint": bytes(32), "reserved_run_id": run_id,
        "run_id": run_id if status != "pending" else None, "status": status, "created_at": 1,
        "updated_at": 1})
      for key, run_id, status in (
          ("a", ":ended", "succeeded"), ("b", ":waits", "waiting"), ("c", "to-come", "pending"))),
    # A captured session with its links and its checkpoint.
    _row("session_segments",
     {"segment_id": "capture", "run_id": ":waits", "session_id": "s",
      "resource_id": "session-capture", "status": "recording", "entry_count": 2,
      "event_count": CHECKPOINT_EVENTS, "entry_digest": bytes(32), "event_digest": bytes(32),
      "created_at": 1}),
    _row("viewer_session_checkpoints",
     {"run_id": ":waits", "event_seq": CHECKPOINT_EVENTS, "state_hash": STATE.digest,
      "recorded_at": 1}),
)  # fmt: skip
ENTRIES: tuple[dict[str, SqlValue], ...] = tuple(
    {"segment_id": "capture", "run_id": ":waits", "entry_seq": number, "run_seq": number,
     "entry_id": f"entry-{number}", "entry_hash": VALUE.digest, "presentation_revision": 1,
     "recorded_at": 1}
    for number in (1, 2)
)  # fmt: skip
EVENTS: tuple[dict[str, SqlValue], ...] = tuple(
    {"segment_id": "capture", "run_id": ":waits", "event_seq": number, "run_seq": number,
     "event_type": "turn", "node_id": None, "attempt_id": ":waiting", "turn_id": None,
     "message_id": None, "tool_call_id": None, "payload_hash": VALUE.digest,
     "presentation_revision": 1, "recorded_at": 1}
    for number in range(1, CHECKPOINT_EVENTS + 1)
)  # fmt: skip


def insert(connection: Connection, table: str, row: Mapping[str, SqlValue]) -> None:
    """Put a row in, and the resource that it belongs to."""
    names = ", ".join(row)
    places = ", ".join(f":{name}" for name in row)
    connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", row)  # noqa: S608 - ours
    resource = row.get("resource_id")
    if isinstance(resource, str):
        kind = resource.partition("-")[0]
        is_effect = kind == "effect"
        key = row["effect_id"] if is_effect else resource.removeprefix(f"{kind}-")
        connection.execute(
            "INSERT INTO resources VALUES (:id, :kind, :key, 0, 1, 1)",
            {"id": resource, "kind": kind, "key": key},
        )
        connection.execute("INSERT INTO leases (resource_id) VALUES (:id)", {"id": resource})


class Places(NamedTuple):
    """What the rows name of a sound database.

    Attributes:
        ended: A run that completed after a question was answered.
        attempt: The attempt that asked it.
        failed: A run that failed.
        waits: A run whose question is open.
        waiting: The attempt that asks it.
        request: The question.
    """

    ended: str
    attempt: str
    failed: str
    waits: str
    waiting: str
    request: str


_PLACES = """
SELECT s.run_id, s.attempt_id, (SELECT min(run_id) FROM runs WHERE status = 'failed'), p.run_id,
       p.attempt_id, p.request_id
FROM interactive_requests AS s
JOIN runs AS r ON r.run_id = s.run_id AND r.status = 'completed'
JOIN interactive_requests AS p ON p.status = 'pending' AND p.kind = 'checkpoint'
WHERE s.status = 'settled' AND s.kind = 'checkpoint' LIMIT 1
"""
# An attempt that had settings, a question that was a decision, a run that recovers from another.
_CHANGES = """
UPDATE node_attempts
SET settings_scope_id = 'scope', settings_change_number = 0, settings_hash = :value
WHERE attempt_id = :waiting;
UPDATE interactive_requests SET kind = 'decision' WHERE attempt_id = :attempt;
UPDATE runs SET recovery_root_run_id = :ended, recovery_source_message_id = 'tells'
WHERE run_id = :failed;
UPDATE session_segments SET entry_digest = :entries, event_digest = :events;
INSERT INTO attempt_entries (attempt_id, role, segment_id, entry_id)
VALUES (:waiting, 'response', 'capture', 'entry-2');
"""


_NODE = "SELECT node_id, visit_number FROM node_attempts WHERE attempt_id = :attempt"
_RESOLVED = """
UPDATE human_decision_resolutions SET request_digest = (
    SELECT request_digest FROM human_decisions AS d
    WHERE d.decision_id = human_decision_resolutions.decision_id)
"""


def place(connection: Connection, row: Mapping[str, SqlValue]) -> dict[str, SqlValue]:
    """Return a row with the identities of the database in their places."""
    (found,) = connection.execute(_PLACES).fetchall()
    places = Places(*map(str, found))._asdict()
    names = {f":{name}": value for name, value in places.items()}
    return {
        column: names.get(value, value) if isinstance(value, str) else value
        for column, value in row.items()
    }


def running(rows: Iterable[dict[str, SqlValue]]) -> bytes:
    """Return the running digest over rows."""
    digest = EMPTY_DIGEST
    for row in rows:
        digest = entry_digest(digest, row)
    return digest


def put(connection: Connection, blob: Blob) -> None:
    """Store a value."""
    insert(
        connection,
        "blobs",
        {"blob_hash": blob.digest, "media_type": blob.media_type,
         "byte_length": len(blob.content), "content": blob.content, "created_at": 1},
    )  # fmt: skip


def _request(connection: Connection, row: Mapping[str, SqlValue]) -> Blob:
    """Return what a decision asks, whose digest it has."""
    ((node_id, visit),) = connection.execute(_NODE, {"attempt": row["attempt_id"]}).fetchall()
    value = VALUE.hex
    return Asked(
        decision_id=str(row["decision_id"]),
        run_id=str(row["run_id"]),
        node_id=str(node_id),
        visit=int(str(visit)),
        attempt_id=str(row["attempt_id"]),
        title=str(row["title"]),
        audience=str(row["audience"]),
        revision=1,
        subject_digest=value,
        presentation_digest=value,
        choices_digest=value,
        deadline_at=5,
        default_response_digest=value,
    ).blob()


def furnish(file: Path) -> None:
    """Put rows of every table to come into a sound database."""
    with closing(connect(str(file))) as connection:
        # Resources without a log stand at revision 0 and generation 0, where nothing comes from.
        connection.pragma("ignore_check_constraints", 1)
        for blob in (VALUE, PATCH, STATE):
            put(connection, blob)
        for table, row in ROWS:
            placed = place(connection, row)
            if table == "human_decisions":
                request = _request(connection, placed)
                put(connection, request)
                placed |= {"request_digest": request.digest, "request_hash": request.digest}
            insert(connection, table, placed)
        connection.execute(_RESOLVED).fetchall()
        entries = [place(connection, row) for row in ENTRIES]
        events = [place(connection, row) for row in EVENTS]
        for row in entries:
            insert(connection, "session_entries", row)
        for row in events:
            insert(connection, "session_events", row)
        (found,) = connection.execute(_PLACES).fetchall()
        connection.execute(
            _CHANGES,
            {**Places(*map(str, found))._asdict(), "value": VALUE.digest, "patch": PATCH.digest,
             "entries": running(entries), "events": running(events)},
        ).fetchall()  # fmt: skip


def test_rows_as_they_must_be_violate_nothing(sound: Path, tmp_path: Path) -> None:
    """No rule finds fault with sound rows of tables to come; only the log does not know them."""
    file = Path(shutil.copy(sound, tmp_path / "state.sqlite"))
    furnish(file)
    assert check(file, quick=True).violations == ()
    assert {violation.code for violation in check(file).violations} == {"replay"}
