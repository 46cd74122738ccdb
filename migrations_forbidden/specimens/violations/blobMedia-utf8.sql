-- A text is no UTF-8.

CREATE TEMP TABLE victim AS
SELECT run_id FROM runs WHERE status = 'failed' ORDER BY run_id LIMIT 1;

INSERT INTO blobs (blob_hash, media_type, byte_length, content, created_at)
VALUES (
    X'A8100AE6AA1940D0B663BB31CD466142EBBDBD5187131B92D93818987832EB89',
    'text/plain', 1, X'FF', 1);
UPDATE runs SET error_hash = X'A8100AE6AA1940D0B663BB31CD466142EBBDBD5187131B92D93818987832EB89'
WHERE run_id = (SELECT run_id FROM victim);
