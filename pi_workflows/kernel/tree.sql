-- Each step goes along an index, so that a tree costs what it has and not what the database has: CROSS JOIN keeps the
-- planner from beginning with a whole table.

-- name: runs_of_tree
-- Every run that is joined to one: parents, roots and recoveries, up and down.
WITH RECURSIVE tree (run_id) AS (
    SELECT run_id FROM runs WHERE run_id = :run_id
    UNION
    SELECT r.parent_run_id FROM tree CROSS JOIN runs AS r ON r.run_id = tree.run_id WHERE r.parent_run_id IS NOT NULL
    UNION
    SELECT r.root_run_id FROM tree CROSS JOIN runs AS r ON r.run_id = tree.run_id
    UNION
    SELECT r.recovery_root_run_id FROM tree CROSS JOIN runs AS r ON r.run_id = tree.run_id
    WHERE r.recovery_root_run_id IS NOT NULL
    UNION
    SELECT m.run_id FROM tree CROSS JOIN runs AS r ON r.run_id = tree.run_id
    JOIN workflow_messages AS m ON m.workflow_message_id = r.recovery_source_message_id
    UNION
    SELECT r.run_id FROM tree CROSS JOIN runs AS r ON r.parent_run_id = tree.run_id
    UNION
    SELECT r.run_id FROM tree CROSS JOIN runs AS r ON r.root_run_id = tree.run_id
    UNION
    SELECT r.run_id FROM tree CROSS JOIN runs AS r ON r.recovery_root_run_id = tree.run_id
    UNION
    SELECT r.run_id FROM tree CROSS JOIN workflow_messages AS m ON m.run_id = tree.run_id
    JOIN runs AS r ON r.recovery_source_message_id = m.workflow_message_id
)

SELECT run_id FROM tree ORDER BY run_id

-- name: resources_of_runs
-- What the runs of a tree own: themselves, captures, decisions, settings, follow-ups, messages, and the effects of all.
WITH member (run_id) AS (SELECT value FROM json_each(:run_ids)),

owned (resource_id) AS (
    SELECT r.resource_id FROM member CROSS JOIN runs AS r ON r.run_id = member.run_id
    UNION
    SELECT s.resource_id FROM member CROSS JOIN session_segments AS s ON s.run_id = member.run_id
    UNION
    SELECT d.resource_id FROM member CROSS JOIN human_decisions AS d ON d.run_id = member.run_id
    UNION
    SELECT w.resource_id FROM member CROSS JOIN workflow_settings AS w ON w.origin_run_id = member.run_id
    UNION
    SELECT f.resource_id FROM member CROSS JOIN workflow_follow_ups AS f ON f.run_id = member.run_id
    UNION
    SELECT m.resource_id FROM member CROSS JOIN workflow_messages AS m ON m.run_id = member.run_id
)

SELECT resource_id FROM owned
UNION
SELECT e.resource_id FROM owned CROSS JOIN effects AS e ON e.source_resource_id = owned.resource_id
ORDER BY 1
