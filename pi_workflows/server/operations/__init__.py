"""What each operation does: one function an operation, one table that names them all."""
