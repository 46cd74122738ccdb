-- A session has two open turns: its index is no longer unique while the second is put in.
-- also: integrity

CREATE TEMP TABLE victim AS
SELECT run_id FROM first_run WHERE status IN ('completed', 'failed');

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-first', 'message', 'first', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('message-first', 0);
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    'first', (SELECT run_id FROM first_run WHERE status = 'completed'), 's', 'terminal',
    (SELECT run_id FROM first_run WHERE status = 'completed'), (SELECT digest FROM value),
    1, 'sent', 'entry-1', NULL, 1, 1, 'message-first');
INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-second', 'message', 'second', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('message-second', 0);
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    'second', (SELECT run_id FROM first_run WHERE status = 'failed'), 's', 'terminal',
    (SELECT run_id FROM first_run WHERE status = 'failed'), (SELECT digest FROM value),
    2, 'sent', 'entry-2', NULL, 1, 1, 'message-second');
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'CREATE UNIQUE', 'CREATE') WHERE name = 'workflow_turns_open_session';
PRAGMA writable_schema = RESET;
INSERT INTO workflow_turns (
    workflow_turn_id, workflow_message_id, run_id, target_session_id, state, started_at)
SELECT 'one', workflow_message_id, run_id, 's', 'started', 1
FROM workflow_messages WHERE workflow_message_id = 'first';
INSERT INTO workflow_turns (
    workflow_turn_id, workflow_message_id, run_id, target_session_id, state, started_at)
SELECT 'two', workflow_message_id, run_id, 's', 'started', 1
FROM workflow_messages WHERE workflow_message_id = 'second';
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'CREATE', 'CREATE UNIQUE') WHERE name = 'workflow_turns_open_session';
PRAGMA writable_schema = RESET;
