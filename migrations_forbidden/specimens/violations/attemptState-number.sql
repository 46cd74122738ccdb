-- A node has a second attempt and no first.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE node_attempts SET attempt_number = attempt_number + 1
WHERE attempt_id = (SELECT attempt_id FROM node_attempts WHERE run_id = (SELECT run_id FROM victim)
                    ORDER BY node_id, attempt_number DESC LIMIT 1);
