-- name: settled_steps
-- The step of the newest settled attempt of each node asked for. Only attempts that lost their runner are passed over,
-- from the end of UNIQUE(run_id, node_id, attempt_number), so that a long history costs nothing.
SELECT t.step_index
FROM json_each(:node_paths) AS asked
CROSS JOIN node_attempts AS s
    ON s.run_id = :run_id AND s.node_id = asked.value AND s.attempt_number = (
        SELECT m.attempt_number FROM node_attempts AS m
        WHERE m.run_id = :run_id AND m.node_id = asked.value
          AND m.status IN ('completed', 'failed', 'timed_out')
        ORDER BY m.attempt_number DESC LIMIT 1)
CROSS JOIN run_steps AS t ON t.attempt_id = s.attempt_id

-- name: exits
-- The newest attempt that ended well of each node asked for. They leave their mount: what stands after them is one
-- visit's failures at most.
SELECT asked.value, s.attempt_id, s.visit_number, t.step_index
FROM json_each(:node_paths) AS asked
CROSS JOIN node_attempts AS s
    ON s.run_id = :run_id AND s.node_id = asked.value AND s.attempt_number = (
        SELECT m.attempt_number FROM node_attempts AS m
        WHERE m.run_id = :run_id AND m.node_id = asked.value AND m.status = 'completed'
        ORDER BY m.attempt_number DESC LIMIT 1)
CROSS JOIN run_steps AS t ON t.attempt_id = s.attempt_id
ORDER BY asked.key
