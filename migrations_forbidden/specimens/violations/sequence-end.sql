-- The counter of event numbers is at its end: no event could be appended.

UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'events';
