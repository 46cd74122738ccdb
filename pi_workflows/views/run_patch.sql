-- name: known
-- How many revisions after one have patches, and how many bytes.
SELECT count(DISTINCT d.presentation_revision), coalesce(sum(b.byte_length), 0)
FROM viewer_deltas AS d
JOIN blobs AS b ON b.blob_hash = d.patch_hash
WHERE d.run_id = :run_id AND d.presentation_revision > :after

-- name: deltas
-- The patches after a revision, in order; at most the window of them is kept.
SELECT d.presentation_revision, d.delta_index, d.target_type, d.target_key, b.content
FROM viewer_deltas AS d
CROSS JOIN blobs AS b ON b.blob_hash = d.patch_hash
WHERE d.run_id = :run_id AND d.presentation_revision > :after
ORDER BY d.presentation_revision, d.delta_index
