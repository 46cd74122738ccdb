"""What travels between processes: frames, envelopes, operations and their models. Nothing here does any I/O."""
