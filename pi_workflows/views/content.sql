-- name: named_content
-- A document that was generated for the run; or a value, if an event of the run, of one of its effects, captures,
-- decisions, settings or follow-ups names it: those links live as long as the run and lead an index. What the session
-- is told stands in its messages, what was captured in the session journals.
SELECT byte_length, substr(content, :start + 1, :bytes_max)
FROM run_view_content
WHERE run_id = :run_id AND content_hash = :digest AND media_type = :media_type
UNION ALL
SELECT b.byte_length, substr(b.content, :start + 1, :bytes_max)
FROM runs AS r
CROSS JOIN blobs AS b ON b.blob_hash = :digest AND b.media_type = :media_type
WHERE r.run_id = :run_id AND (
    EXISTS (
        SELECT 1
        FROM event_blobs AS n
        CROSS JOIN events AS e ON e.event_seq = n.event_seq
        LEFT JOIN effects AS f ON f.resource_id = e.resource_id
        LEFT JOIN session_segments AS s ON s.resource_id = e.resource_id
        LEFT JOIN human_decisions AS d ON d.resource_id = e.resource_id
        LEFT JOIN workflow_settings AS w ON w.resource_id = e.resource_id
        LEFT JOIN workflow_follow_ups AS u ON u.resource_id = e.resource_id
        WHERE n.blob_hash = b.blob_hash
          AND (e.resource_id = r.resource_id OR f.source_resource_id = r.resource_id OR s.run_id = r.run_id
               OR d.run_id = r.run_id OR w.active_run_id = r.run_id OR u.run_id = r.run_id))
    OR EXISTS (SELECT 1 FROM workflow_messages AS m WHERE m.content_hash = b.blob_hash AND m.run_id = r.run_id)
    OR EXISTS (SELECT 1 FROM session_entries AS n WHERE n.entry_hash = b.blob_hash AND n.run_id = r.run_id)
    OR EXISTS (SELECT 1 FROM session_events AS n WHERE n.payload_hash = b.blob_hash AND n.run_id = r.run_id))
LIMIT 1

-- name: value
-- A value by its digest, small ones with their content.
SELECT blob_hash, media_type, byte_length,
       CASE WHEN byte_length <= :carried_bytes THEN content END
FROM blobs
WHERE blob_hash = :digest
