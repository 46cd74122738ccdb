-- A trigger that does something whenever a run ends stands in the file.

CREATE TRIGGER forged AFTER UPDATE ON runs BEGIN
    UPDATE runs SET title = 'forged' WHERE run_id = new.run_id;
END;
