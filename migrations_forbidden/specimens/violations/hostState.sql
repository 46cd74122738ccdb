-- The server's epoch is set back behind receipts and runners of later ones.

UPDATE workflow_host_state SET epoch = 0;
CREATE TEMP TABLE victim AS SELECT run_id FROM run_workers ORDER BY run_id LIMIT 1;
