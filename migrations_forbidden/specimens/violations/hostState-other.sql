-- The server's row is not the one that a server looks for.

UPDATE workflow_host_state SET id = 7;
