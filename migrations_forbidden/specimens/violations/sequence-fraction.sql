-- The counter of event numbers is no whole number.

UPDATE sqlite_sequence SET seq = seq + 0.5 WHERE name = 'events';
