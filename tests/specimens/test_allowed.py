"""What a rule could take for a violation and must not."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from pi_workflows.store.driver import connect
from tests.specimens.checked import check

# A claim that had expired when the newest event was written, of a run that has ended.
EXPIRED: Final = """
UPDATE leases
SET owner_type = 'host', owner_id = 'gone', token_hash = zeroblob(32), acquired_at = 1,
    heartbeat_at = 1, expires_at = (SELECT recorded_at FROM events ORDER BY event_seq DESC LIMIT 1)
WHERE resource_id = (SELECT resource_id FROM runs WHERE status = 'completed' LIMIT 1)
"""
# An effect that nobody wanted before anything was tried.
UNTRIED: Final = """
CREATE TEMP TABLE chosen AS
SELECT effect_id FROM effects WHERE status = 'rejected' AND attempt_count > 0 LIMIT 1;
DELETE FROM effect_attempts WHERE effect_id = (SELECT effect_id FROM chosen);
UPDATE effects SET status = 'cancelled', attempt_count = 0, error_hash = NULL
WHERE effect_id = (SELECT effect_id FROM chosen);
"""
# A second interval that was opened, at an earlier time of day, by an event after the one that
# closed the first.
REOPENED: Final = """
CREATE TEMP TABLE chosen AS
SELECT i.attempt_id, e.payload_hash
FROM attempt_active_intervals AS i
JOIN node_attempts AS a ON a.attempt_id = i.attempt_id
JOIN runs AS r ON r.run_id = a.run_id
JOIN events AS e ON e.resource_id = r.resource_id AND e.event_type = 'run.completed'
WHERE i.ended_at IS NOT NULL LIMIT 1;
INSERT INTO attempt_active_intervals
SELECT attempt_id, 2, 1, 1, 1, 0 FROM chosen;
UPDATE blobs
SET content = CAST(json_set(
    CAST(content AS TEXT), '$.interval',
    json_object('attempt_id', (SELECT attempt_id FROM chosen), 'interval_number', 2,
                'started_at', 1)) AS BLOB)
WHERE blob_hash = (SELECT payload_hash FROM chosen);
"""
# Numbers that were given and whose events are gone.
AHEAD: Final = "UPDATE sqlite_sequence SET seq = seq + 1000 WHERE name = 'events'"


@pytest.mark.parametrize(
    "edit", [EXPIRED, UNTRIED, REOPENED, AHEAD], ids=["expired", "untried", "reopened", "ahead"]
)
def test_what_is_allowed_violates_no_rule(sound: Path, tmp_path: Path, edit: str) -> None:
    """The rules find nothing; that the log knows nothing of it is for the replay to say."""
    file = Path(shutil.copy(sound, tmp_path / "state.sqlite"))
    with closing(connect(str(file))) as connection:
        connection.pragma("ignore_check_constraints", 1)
        connection.execute(edit).fetchall()
        assert connection.changes() == 1
    assert check(file, quick=True).violations == ()


def test_a_server_without_a_row_has_words_of_its_own(sound: Path, tmp_path: Path) -> None:
    """Where the row is missing no epoch is ahead of it, and nothing of the kind is said."""
    file = Path(shutil.copy(sound, tmp_path / "state.sqlite"))
    with closing(connect(str(file))) as connection:
        connection.execute("DELETE FROM workflow_host_state").fetchall()
    (violation,) = check(file, quick=True).violations
    assert violation.explanation == "The server has no row of its own, or two"
