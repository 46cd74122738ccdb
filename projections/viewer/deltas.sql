-- name: insert_delta
INSERT INTO viewer_deltas (
    run_id, presentation_revision, delta_index, target_type, target_key, patch_hash, recorded_at
) VALUES (:run_id, :revision, :delta_index, :target_type, :target_key, :patch_hash, :at_ms)

-- name: trim
-- Patches below the retained floor are of no use to anybody.
DELETE FROM viewer_deltas WHERE run_id = :run_id AND presentation_revision < :floor
