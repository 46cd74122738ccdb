-- A node is visited again, and it is not counted.

CREATE TEMP TABLE victim AS
SELECT run_id, attempt_id FROM node_attempts WHERE attempt_number > 1 ORDER BY run_id, attempt_id LIMIT 1;

UPDATE node_attempts SET visit_number = 0 WHERE attempt_id = (SELECT attempt_id FROM victim);
