-- A channel is said to have delivered what no effect did.

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('channel-x', 'channel', 'x', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('channel-x', 0);
INSERT INTO channels (channel_id, resource_id, adapter_type, profile_key, created_at)
VALUES ('x', 'channel-x', 'telegram', 'default', 1);
INSERT INTO channel_messages (message_id, channel_id, purpose, content_hash, status, created_at, updated_at)
VALUES ('m', 'x', 'delivery', (SELECT digest FROM value), 'confirmed', 1, 1);
