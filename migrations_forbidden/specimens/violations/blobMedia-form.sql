-- The input of a run is JSON in another form than the one that is stored.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'completed' ORDER BY run_id LIMIT 1;

INSERT INTO blobs (blob_hash, media_type, byte_length, content, created_at)
VALUES (
    X'C94841C938B16D8B21CCFCD43131EC607E39782E486250BCD72341C7A3AF0E44',
    'application/json', 11, CAST('{ "a" : 1 }' AS BLOB), 1);
UPDATE runs SET input_hash = X'C94841C938B16D8B21CCFCD43131EC607E39782E486250BCD72341C7A3AF0E44'
WHERE run_id = (SELECT run_id FROM victim);
