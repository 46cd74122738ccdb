-- What no rebuild gives again, of another database of the same schema, which is attached as `source`: values, receipts,
-- and the runners that the receipts name.

-- name: blobs
-- The values that no event names.
INSERT INTO main.blobs SELECT * FROM source.blobs WHERE true ON CONFLICT (blob_hash) DO NOTHING

-- name: host_commands
INSERT INTO main.host_commands SELECT * FROM source.host_commands

-- name: run_workers
INSERT INTO main.run_workers SELECT * FROM source.run_workers

-- name: worker_messages
INSERT INTO main.worker_messages SELECT * FROM source.worker_messages

-- name: run_view_content
INSERT INTO main.run_view_content SELECT * FROM source.run_view_content

-- name: server_epoch
UPDATE main.workflow_host_state SET epoch = coalesce((SELECT max(epoch) FROM source.workflow_host_state), 0)
