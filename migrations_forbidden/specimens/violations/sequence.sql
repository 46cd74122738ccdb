-- The counter of event numbers is set back, so that numbers would be given again.

UPDATE sqlite_sequence SET seq = 1 WHERE name = 'events';
