-- name: integrity
SELECT integrity_check FROM pragma_integrity_check;

-- name: foreign_keys
SELECT "table", rowid, parent, fkid FROM pragma_foreign_key_check;

-- name: pages
SELECT page_count, freelist_count, page_size
FROM pragma_page_count, pragma_freelist_count, pragma_page_size;
