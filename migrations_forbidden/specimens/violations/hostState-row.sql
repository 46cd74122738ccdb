-- The row of the live server is deleted.

DELETE FROM workflow_host_state;
