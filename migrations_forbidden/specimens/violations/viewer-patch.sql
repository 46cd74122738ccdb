-- A patch of a run's view has an operation that no reader knows.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO blobs (blob_hash, media_type, byte_length, content, created_at)
VALUES (
    X'1B8B281E2599E269B4381073E7696465BBEC795B977976B87A97AC6D6FF18746',
    'application/json', 39, CAST('[{"from":"/a","op":"move","path":"/b"}]' AS BLOB), 1);
INSERT INTO viewer_deltas (
    run_id, presentation_revision, delta_index, target_type, target_key, patch_hash, recorded_at)
SELECT run_id, presentation_revision, 0, 'summary', '',
       X'1B8B281E2599E269B4381073E7696465BBEC795B977976B87A97AC6D6FF18746', 1
FROM viewer_runs WHERE run_id = (SELECT run_id FROM victim);
