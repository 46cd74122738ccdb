-- What is asked before and after rows are copied from another database.

-- name: attach
-- The other database, which nobody writes.
ATTACH :uri AS source

-- name: left_out
-- What belongs to a tree and is not copied: rows of whoever acts outside of it.
SELECT 'channel_messages', count(*) FROM source.channel_messages
WHERE decision_id IN (SELECT decision_id FROM main.human_decisions)
UNION ALL
SELECT 'controller_workflows', count(*) FROM source.controller_workflows
WHERE run_id IN (SELECT value FROM json_each(:run_ids))
