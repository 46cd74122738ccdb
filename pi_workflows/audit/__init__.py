"""Looking into a database that no server has open.

Here, as in the server, the kernel meets the projections; a command hands in a file and reads the
result.
"""
