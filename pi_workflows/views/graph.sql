-- name: node_heads
-- The newest attempt of each node, and its newest settled one with its step. Each is a few lookups
-- in UNIQUE(run_id, node_id, attempt_number) from the end: only attempts that lost their runner
-- stand between the two. An attempt that ended with its run has no step.
SELECT h.node_id, h.attempt_id, h.visit_number, h.attempt_number, h.status,
       s.attempt_id, s.visit_number, s.attempt_number, t.step_index
FROM json_each(:node_paths) AS n
CROSS JOIN node_attempts AS h
    ON h.run_id = :run_id AND h.node_id = n.value AND h.attempt_number = (
        SELECT m.attempt_number FROM node_attempts AS m
        WHERE m.run_id = :run_id AND m.node_id = n.value
        ORDER BY m.attempt_number DESC LIMIT 1)
LEFT JOIN node_attempts AS s
    ON s.run_id = :run_id AND s.node_id = n.value AND s.attempt_number = (
        SELECT m.attempt_number FROM node_attempts AS m
        WHERE m.run_id = :run_id AND m.node_id = n.value
          AND m.status IN ('completed', 'failed', 'timed_out', 'cancelled')
        ORDER BY m.attempt_number DESC LIMIT 1)
LEFT JOIN run_steps AS t ON t.attempt_id = s.attempt_id
ORDER BY n.key

-- name: settled_up_to
-- The newest attempt of a node, up to a number, that has a step.
SELECT a.attempt_id, a.visit_number, a.attempt_number, t.step_index
FROM node_attempts AS a
JOIN run_steps AS t ON t.attempt_id = a.attempt_id
WHERE a.run_id = :run_id AND a.node_id = :node_path AND a.attempt_number <= :attempt_number
ORDER BY a.attempt_number DESC
LIMIT 1

-- name: first_steps
-- The first step of each visit that is asked for by node, visit and the number of its newest
-- attempt; null for a visit without a step. The walk begins after the visit before, which is found
-- from the end of this one.
SELECT asked.value ->> 0, (
    SELECT t.step_index
    FROM node_attempts AS a
    JOIN run_steps AS t ON t.attempt_id = a.attempt_id
    WHERE a.run_id = :run_id AND a.node_id = asked.value ->> 0
      AND a.attempt_number <= asked.value ->> 2
      AND a.attempt_number > coalesce(
          (SELECT m.attempt_number FROM node_attempts AS m
           WHERE m.run_id = :run_id AND m.node_id = asked.value ->> 0
             AND m.attempt_number < asked.value ->> 2 AND m.visit_number < asked.value ->> 1
           ORDER BY m.attempt_number DESC LIMIT 1), 0)
    ORDER BY a.attempt_number
    LIMIT 1)
FROM json_each(:visits) AS asked

-- name: graph_steps
-- The attempts that a graph shows, without bodies.
SELECT a.attempt_id, a.node_id, a.node_type, a.visit_number, a.attempt_number, a.status,
       a.started_at, a.finished_at, t.step_index
FROM json_each(:attempt_ids) AS asked
CROSS JOIN node_attempts AS a ON a.attempt_id = asked.value
LEFT JOIN run_steps AS t ON t.attempt_id = a.attempt_id
ORDER BY asked.key

-- name: steps_at
-- The nodes of single steps.
SELECT t.step_index, a.node_id
FROM json_each(:step_indexes) AS asked
CROSS JOIN run_steps AS t ON t.run_id = :run_id AND t.step_index = asked.value
CROSS JOIN node_attempts AS a ON a.attempt_id = t.attempt_id

-- name: step_total
-- How many steps a run has; they are numbered without a gap.
SELECT step_index + 1 FROM run_steps WHERE run_id = :run_id ORDER BY step_index DESC LIMIT 1

-- name: head_values
-- The output and error of settled attempts, in the order of the question.
SELECT a.node_id, a.status,
       a.output_hash, o.media_type, o.byte_length,
       CASE WHEN o.byte_length <= :carried_bytes THEN o.content END,
       a.error_hash, e.media_type, e.byte_length,
       CASE WHEN e.byte_length <= :carried_bytes THEN e.content END
FROM json_each(:attempt_ids) AS asked
CROSS JOIN node_attempts AS a ON a.attempt_id = asked.value
LEFT JOIN blobs AS o ON o.blob_hash = a.output_hash
LEFT JOIN blobs AS e ON e.blob_hash = a.error_hash
ORDER BY asked.key
