-- A question is brought back to mind a third time.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'pending' ORDER BY run_id, request_id LIMIT 1;

INSERT INTO blobs (blob_hash, media_type, byte_length, content, created_at)
VALUES (
    X'387F28AB6FBBE29906063D13C4052A40513F1351533275908D013BD946CACD51',
    'application/json', 27, CAST('{"reason":"reminder","v":1}' AS BLOB), 1);
INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-reminder-1', 'message', 'reminder-1', 1, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('message-reminder-1', 0);
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    'reminder-1', (SELECT run_id FROM victim), 's', 'step',
    (SELECT request_id FROM victim), (SELECT digest FROM value),
    1, 'cancelled', NULL, NULL, 1, 1, 'message-reminder-1');
INSERT INTO events (
    event_seq, event_id, resource_id, resource_revision, event_type, actor_type, payload_hash, event_digest,
    recorded_at)
SELECT max(event_seq) + 1, 'reminder-1', 'message-reminder-1', 1, 'message.created', 'system',
       X'387F28AB6FBBE29906063D13C4052A40513F1351533275908D013BD946CACD51', zeroblob(32), 1
FROM events;
INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-reminder-2', 'message', 'reminder-2', 1, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('message-reminder-2', 0);
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    'reminder-2', (SELECT run_id FROM victim), 's', 'step',
    (SELECT request_id FROM victim), (SELECT digest FROM value),
    2, 'cancelled', NULL, NULL, 1, 1, 'message-reminder-2');
INSERT INTO events (
    event_seq, event_id, resource_id, resource_revision, event_type, actor_type, payload_hash, event_digest,
    recorded_at)
SELECT max(event_seq) + 1, 'reminder-2', 'message-reminder-2', 1, 'message.created', 'system',
       X'387F28AB6FBBE29906063D13C4052A40513F1351533275908D013BD946CACD51', zeroblob(32), 1
FROM events;
INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('message-reminder-3', 'message', 'reminder-3', 1, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('message-reminder-3', 0);
INSERT INTO workflow_messages (
    workflow_message_id, run_id, target_session_id, kind, source_id, content_hash, order_number, status,
    pi_session_entry_id, recovery_stop, created_at, updated_at, resource_id)
VALUES (
    'reminder-3', (SELECT run_id FROM victim), 's', 'step',
    (SELECT request_id FROM victim), (SELECT digest FROM value),
    3, 'cancelled', NULL, NULL, 1, 1, 'message-reminder-3');
INSERT INTO events (
    event_seq, event_id, resource_id, resource_revision, event_type, actor_type, payload_hash, event_digest,
    recorded_at)
SELECT max(event_seq) + 1, 'reminder-3', 'message-reminder-3', 1, 'message.created', 'system',
       X'387F28AB6FBBE29906063D13C4052A40513F1351533275908D013BD946CACD51', zeroblob(32), 1
FROM events;
