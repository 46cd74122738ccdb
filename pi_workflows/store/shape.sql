-- name: identities
SELECT schema_name, schema_version, schema_digest FROM schema_meta LIMIT 2;

-- name: objects
-- What SQLite makes by itself is no difference: one counter, statistics, and the index of each key. By type too,
-- as a file can be forged; and by GLOB, not LIKE, where the underscore is a wildcard and "sqlitexevil" would pass.
SELECT type, name, tbl_name, sql
FROM sqlite_schema
WHERE NOT (type = 'table' AND name = 'sqlite_sequence')
    AND NOT (type = 'table' AND name GLOB 'sqlite_stat[1-4]')
    AND NOT (type = 'index' AND name GLOB 'sqlite_autoindex_*' AND sql IS NULL)
ORDER BY type, name;

-- name: create_identity
INSERT INTO schema_meta (id, schema_name, schema_version, schema_digest, app_version, created_at, updated_at)
VALUES (1, 'pi-workflows-state', 1, :schema_digest, :app_version, :now_ms, :now_ms);
