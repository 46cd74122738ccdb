"""Events become rows: the only code that writes a domain table or a viewer table, live and in replay."""
