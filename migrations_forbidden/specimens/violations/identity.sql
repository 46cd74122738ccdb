-- The file says that it is of another schema.

UPDATE schema_meta SET schema_digest = zeroblob(32);
