-- name: advance
-- One row a run, from its first event on. The retained floor trails the revision by the window.
INSERT INTO viewer_runs (run_id, presentation_revision, retained_from_revision, updated_at)
VALUES (:run_id, :revision, :floor, :at_ms)
ON CONFLICT (run_id) DO UPDATE
SET presentation_revision = excluded.presentation_revision, retained_from_revision = excluded.retained_from_revision,
    updated_at = excluded.updated_at
WHERE viewer_runs.presentation_revision = excluded.presentation_revision - 1
