-- The counter of event numbers is a word.

UPDATE sqlite_sequence SET seq = 'x' WHERE name = 'events';
