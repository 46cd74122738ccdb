-- name: position
-- The number that was given last, of a pruned event too, and the digest that the new one continues.
SELECT
    coalesce((SELECT max(seq) FROM sqlite_sequence WHERE name = 'events' AND typeof(seq) = 'integer'), 0),
    (
        SELECT event_digest FROM events
        WHERE resource_id = :resource_id AND resource_revision = :previous_revision
    );

-- name: insert_event
INSERT INTO events (
    event_seq, event_id, resource_id, resource_revision, event_type, actor_type, actor_id,
    lease_generation, payload_hash, event_digest, recorded_at
) VALUES (
    :event_seq, :event_id, :resource_id, :resource_revision, :event_type, :actor_type, :actor_id,
    :lease_generation, :payload_hash, :event_digest, :recorded_at
);

-- name: insert_event_blob
INSERT INTO event_blobs (event_seq, blob_hash) VALUES (:event_seq, :blob_hash);

-- name: payload
SELECT blobs.content
FROM events
JOIN blobs ON blobs.blob_hash = events.payload_hash
WHERE events.event_seq = :event_seq;

-- name: events_after
SELECT
    events.event_seq, events.event_id, events.resource_id, events.resource_revision,
    events.event_type, events.actor_type, events.actor_id, events.lease_generation,
    events.payload_hash, events.event_digest, events.recorded_at, blobs.content
FROM events
LEFT JOIN blobs ON blobs.blob_hash = events.payload_hash
WHERE events.event_seq > :after_seq
ORDER BY events.event_seq
LIMIT :slice;

-- name: events_of_after
-- The log of some resources, in its order. The unary plus keeps the planner in that order: it tests each event of the log
-- instead of sorting all of theirs once a slice.
SELECT
    events.event_seq, events.event_id, events.resource_id, events.resource_revision,
    events.event_type, events.actor_type, events.actor_id, events.lease_generation,
    events.payload_hash, events.event_digest, events.recorded_at, blobs.content
FROM events
LEFT JOIN blobs ON blobs.blob_hash = events.payload_hash
WHERE events.event_seq > :after_seq
    AND +events.resource_id IN (SELECT value FROM json_each(:resource_ids))
ORDER BY events.event_seq
LIMIT :slice;

-- name: high_water_mark
-- SQLite's own table of counters takes rows of any type and number; what is no integer counts nothing.
SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'events' AND typeof(seq) = 'integer';

-- name: last_event
SELECT
    events.event_seq, events.event_id, events.resource_id, events.resource_revision,
    events.event_type, events.actor_type, events.actor_id, events.lease_generation,
    events.payload_hash, events.event_digest, events.recorded_at, blobs.content
FROM events
LEFT JOIN blobs ON blobs.blob_hash = events.payload_hash
WHERE events.event_seq = (SELECT max(event_seq) FROM events);

-- name: digest_at
SELECT event_digest FROM events
WHERE resource_id = :resource_id AND resource_revision = :resource_revision;
