-- name: identities
SELECT schema_name, schema_version, schema_digest FROM schema_meta LIMIT 2;

-- name: objects
-- GLOB, not LIKE: in LIKE the underscore is a wildcard, and "sqlitexevil" would pass for SQLite's own.
SELECT type, name, tbl_name, sql
FROM sqlite_schema
WHERE name <> 'sqlite_sequence'
    AND name NOT GLOB 'sqlite_stat*'
    AND name NOT GLOB 'sqlite_autoindex_*'
ORDER BY type, name;

-- name: create_identity
INSERT INTO schema_meta (id, schema_name, schema_version, schema_digest, app_version, created_at, updated_at)
VALUES (1, 'pi-workflows-state', 1, :schema_digest, :app_version, :now_ms, :now_ms);
