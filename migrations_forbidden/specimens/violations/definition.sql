-- A definition's digest leads to the document of another one.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

UPDATE workflow_definitions
SET definition_hash = (SELECT d.definition_hash FROM workflow_definitions AS d
                       WHERE d.definition_digest <> workflow_definitions.definition_digest
                       ORDER BY d.definition_digest LIMIT 1)
WHERE definition_digest = (SELECT definition_digest FROM runs WHERE run_id = (SELECT run_id FROM victim));
