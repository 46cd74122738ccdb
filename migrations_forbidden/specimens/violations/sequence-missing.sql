-- The counter of event numbers is deleted.

DELETE FROM sqlite_sequence WHERE name = 'events';
