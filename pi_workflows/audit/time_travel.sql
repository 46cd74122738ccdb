-- name: header
-- Whose an event is, and what it says.
SELECT resource_id, event_type FROM events WHERE event_seq = :event_seq

-- name: range
-- The first and the last event that are there; pruned ones leave gaps.
SELECT min(event_seq), max(event_seq) FROM events
