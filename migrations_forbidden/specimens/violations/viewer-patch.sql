-- A patch of a run's view has an operation that no reader knows.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO blobs (blob_hash, media_type, byte_length, content, created_at)
VALUES (
    X'1B8B281E2599E269B4381073E7696465BBEC795B977976B87A97AC6D6FF18746',
    'application/json', 39, CAST('[{"from":"/a","op":"move","path":"/b"}]' AS BLOB), 1);
UPDATE viewer_deltas SET patch_hash = X'1B8B281E2599E269B4381073E7696465BBEC795B977976B87A97AC6D6FF18746'
WHERE run_id = (SELECT run_id FROM victim) AND presentation_revision = 3 AND delta_index = 0;
