-- name: insert_deltas
-- The patches of a revision, in order, by their content's digest: those that are stored, as JSON, and are the same bytes.
INSERT INTO viewer_deltas (
    run_id, presentation_revision, delta_index, target_type, target_key, patch_hash, recorded_at
)
SELECT :run_id, :revision, d.key, d.value ->> 0, d.value ->> 1, b.blob_hash, :at_ms
FROM json_each(:deltas) AS d
CROSS JOIN blobs AS b ON b.blob_hash = unhex(d.value ->> 2)
WHERE b.content = CAST(d.value -> 3 AS BLOB) AND b.media_type = 'application/json'
ON CONFLICT (run_id, presentation_revision, delta_index) DO NOTHING

-- name: trim
-- Patches below the retained floor are of no use to anybody.
DELETE FROM viewer_deltas WHERE run_id = :run_id AND presentation_revision < :floor
