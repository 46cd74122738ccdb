-- There are two counters of event numbers.

INSERT INTO sqlite_sequence (name, seq) SELECT name, seq FROM sqlite_sequence WHERE name = 'events';
