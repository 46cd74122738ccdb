"""What travels between processes.

Frames, envelopes, operations and their models. Nothing here does any I/O.
"""
