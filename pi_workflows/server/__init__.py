"""The server: the one process that opens the live database, and everything that it looks after."""
