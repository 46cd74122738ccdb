-- A channel belongs to the resource of another one.

INSERT INTO resources (resource_id, resource_type, aggregate_key, revision, created_at, updated_at)
VALUES ('channel-x', 'channel', 'y', 0, 1, 1);
INSERT INTO leases (resource_id, generation) VALUES ('channel-x', 0);
INSERT INTO channels (channel_id, resource_id, adapter_type, profile_key, created_at)
VALUES ('x', 'channel-x', 'telegram', 'default', 1);
