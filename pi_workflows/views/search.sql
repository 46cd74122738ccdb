-- name: node_hits
-- The newest attempt of each node that is asked for, with its step if it has one; nulls for a node
-- that never started. The attempt is found in UNIQUE(run_id, node_id, attempt_number) from the end.
SELECT asked.value, a.attempt_id, t.step_index,
       coalesce(a.finished_at, a.started_at, a.created_at)
FROM json_each(:node_paths) AS asked
LEFT JOIN node_attempts AS a
    ON a.run_id = :run_id AND a.node_id = asked.value AND a.attempt_number = (
        SELECT m.attempt_number FROM node_attempts AS m
        WHERE m.run_id = :run_id AND m.node_id = asked.value
        ORDER BY m.attempt_number DESC LIMIT 1)
LEFT JOIN run_steps AS t ON t.attempt_id = a.attempt_id
ORDER BY asked.key

-- name: step_values
-- What a range of a run's steps gave and why they failed; small values come along. An attempt that
-- is no step has neither.
SELECT t.step_index, a.node_id, a.attempt_id, a.finished_at,
       a.error_hash, e.media_type, e.byte_length,
       CASE WHEN e.byte_length <= :carried_bytes THEN e.content END,
       a.output_hash, o.media_type, o.byte_length,
       CASE WHEN o.byte_length <= :carried_bytes THEN o.content END
FROM run_steps AS t
CROSS JOIN node_attempts AS a ON a.attempt_id = t.attempt_id
LEFT JOIN blobs AS e ON e.blob_hash = a.error_hash
LEFT JOIN blobs AS o ON o.blob_hash = a.output_hash
WHERE t.run_id = :run_id AND t.step_index >= :start AND t.step_index < :stop
ORDER BY t.step_index

-- name: last_error
-- What the last step failed of, which is mostly why the run did, too.
SELECT a.error_hash
FROM run_steps AS t
CROSS JOIN node_attempts AS a ON a.attempt_id = t.attempt_id
WHERE t.run_id = :run_id
ORDER BY t.step_index DESC
LIMIT 1

-- name: entry_total
-- The number of a run's newest entry; they are numbered from 1.
SELECT run_seq FROM session_entries WHERE run_id = :run_id ORDER BY run_seq DESC LIMIT 1

-- name: entry_values
-- A range of a run's entries with the node that each was captured for; small ones come along.
SELECT n.run_seq, n.recorded_at, s.attempt_id, a.node_id,
       n.entry_hash, b.media_type, b.byte_length,
       CASE WHEN b.byte_length <= :carried_bytes THEN b.content END
FROM session_entries AS n
CROSS JOIN session_segments AS s ON s.segment_id = n.segment_id
CROSS JOIN blobs AS b ON b.blob_hash = n.entry_hash
LEFT JOIN node_attempts AS a ON a.attempt_id = s.attempt_id
WHERE n.run_id = :run_id AND n.run_seq > :after AND n.run_seq <= :last
ORDER BY n.run_seq

-- name: beginning
-- The first bytes of a value.
SELECT substr(content, 1, :bytes_max) FROM blobs WHERE blob_hash = :digest
