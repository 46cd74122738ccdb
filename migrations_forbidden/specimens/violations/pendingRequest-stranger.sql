-- An open question is asked by an attempt of another run.

CREATE TEMP TABLE victim AS
SELECT run_id, request_id FROM interactive_requests WHERE status = 'pending' ORDER BY run_id, request_id LIMIT 1;

UPDATE node_attempts
SET node_id = 'forged', attempt_number = 1,
    run_id = (SELECT r.run_id FROM runs AS r
              WHERE r.status = 'running'
                AND NOT EXISTS (SELECT 1 FROM node_attempts AS a
                                WHERE a.run_id = r.run_id AND a.status IN ('pending', 'running', 'waiting'))
              ORDER BY r.run_id LIMIT 1)
WHERE attempt_id = (SELECT attempt_id FROM interactive_requests WHERE request_id = (SELECT request_id FROM victim));
