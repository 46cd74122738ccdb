-- name: had_updates
-- Whether the attempt before this one of the node has progress to show.
SELECT 1 FROM node_attempts AS a
WHERE a.run_id = :run_id AND a.node_id = :node_id AND a.attempt_number = :attempt_number - 1
  AND EXISTS (SELECT 1 FROM workflow_updates AS u WHERE u.attempt_id = a.attempt_id)
